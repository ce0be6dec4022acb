"""What MQTT brings, without Spark: the journal, payloads as rows, and a receiver that dies between them."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.spark.mqtt_broker import MOSQUITTO, WHY_NOT, Broker
from whorl.connectors import journal as journals
from whorl.connectors.journal import Journal, JournalWriter, Message
from whorl.connectors.mqtt import MqttReceiver, read_options
from whorl.connectors.payloads import Payloads
from whorl.diagnostics.errors import UserError


def _messages(first: int, last: int) -> list[Message]:
    return [Message("t", b"\xff\n%d" % number, float(number)) for number in range(first, last)]


def _error(code: str, run: object) -> UserError:
    with pytest.raises(UserError) as caught:
        run()  # type: ignore[operator]
    assert caught.value.code == code
    return caught.value


# The journal


def test_a_journal_gives_the_same_messages_again_across_segments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journals, "SEGMENT_MESSAGES", 3)
    writer = JournalWriter(tmp_path / "j")
    for first in range(0, 10, 2):
        writer.append(_messages(first, first + 2))
    assert [number for number, _path in writer.segments()] == [0, 4, 8]
    everything = _messages(0, 10)
    for reader in (writer, Journal(tmp_path / "j")):
        for start in range(11):
            for end in range(start, 11):
                assert list(reader.read(start, end)) == everything[start:end]
        assert [list(reader.read(at, at + 2)) for at in range(0, 10, 2)] == [
            everything[a : a + 2] for a in range(0, 10, 2)
        ]
    writer.close()


def test_a_journal_goes_on_after_a_torn_line(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path)
    writer.append(_messages(0, 3))
    writer.close()
    path = writer.segments()[0][1]
    whole = path.read_bytes()
    for torn in (whole[:-1], whole[:-5], whole + b"1234", whole + b"00000000 [1]\n"):
        path.write_bytes(torn)
        again = JournalWriter(tmp_path)
        kept = again.end
        assert kept == (2 if torn in whole else 3)
        again.append(_messages(kept, 4))
        assert list(again.read(0, 4)) == _messages(0, 4)
        again.close()
        path.write_bytes(whole)


def test_a_journal_forgets_whole_segments_and_keeps_the_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journals, "SEGMENT_MESSAGES", 2)
    writer = JournalWriter(tmp_path)
    for first in range(0, 6, 2):
        writer.append(_messages(first, first + 2))
    writer.prune(3)
    assert writer.first == 2
    writer.prune(6)
    assert (writer.first, writer.end) == (4, 6)
    writer.close()
    again = JournalWriter(tmp_path)
    assert again.end == 6
    error = _error("E754", lambda: list(again.read(1, 6)))
    assert "does not have message 1\n  Detail: It begins with message 4" in str(error)
    _error("E754", lambda: list(again.read(5, 8)))
    again.close()


def test_one_process_writes_a_journal(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path)
    _error("E753", lambda: JournalWriter(tmp_path, wait_s=0.1))
    writer.close()
    JournalWriter(tmp_path, wait_s=0.1).close()
    (tmp_path / "file").touch()
    _error("E752", lambda: JournalWriter(tmp_path / "file"))


# Payloads


def test_payloads_become_rows() -> None:
    columns = [("Sensor", "string"), ("value", "double"), ("n", "int"), ("ok", "boolean"), ("at", "timestamp")]
    rows = Payloads(columns, {"sensor": "@topic.2", "value": "reading.value"})
    message = b'{"reading": {"value": 21}, "n": 7.0, "ok": true, "at": "2026-05-04T10:00:00"}'
    assert rows.row(Message("site/s1", message, 0.0)) == ("s1", 21.0, 7, True, datetime(2026, 5, 4, 10, tzinfo=UTC))


@pytest.mark.parametrize(
    "payload",
    [b"", b"\xff", b"[1]", b"3", b'{"n": "7"}', b'{"n": 2147483648}', b'{"n": 1.5}', b'{"n": true}', b"[" * 100_000],
)
def test_what_does_not_fit_is_null(payload: bytes) -> None:
    assert Payloads([("n", "int")], {}).row(Message("t", payload, 0.0)) == (None,)


@pytest.mark.parametrize(
    ("kind", "payload", "expected"),
    [
        ("bigint", b"9223372036854775807", 2**63 - 1),
        ("bigint", b"9223372036854775808", None),
        ("tinyint", b"-129", None),
        ("double", b"1e999", None),
        ("double", b"1" + b"0" * 400, None),
        ("string", b'{"a": [1, "\xc3\xa4"]}', '{"a":[1,"ä"]}'),
        ("string", b"null", None),
        ("boolean", b"1", None),
        ("timestamp", b"1.5", datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC)),
        ("timestamp", b'"2026-05-04T10:00:00+02:00"', datetime(2026, 5, 4, 8, tzinfo=UTC)),
        ("timestamp", b'"soon"', None),
        ("timestamp", b"1e300", None),
    ],
)
def test_values_by_type(kind: str, payload: bytes, expected: object) -> None:
    found = Payloads([("v", kind)], {}).row(Message("t", b'{"v": %s}' % payload, 0.0))
    assert found == (expected,)


@pytest.mark.parametrize(
    ("columns", "paths", "text"),
    [
        ([("x", "map<string,int>")], {}, 'the option "schema" of the MQTT source has x of type map<string,int>'),
        ([("x", "int")], {"y": "a"}, 'the option "map.y" of the MQTT source names no column of the schema'),
        ([("x", "int")], {"x": "@when"}, 'has the path "@when", which leads nowhere'),
        ([("x", "int")], {"x": "@topic.0"}, 'has the path "@topic.0", which leads nowhere'),
        ([("x", "int")], {"x": "a..b"}, 'has the path "a..b", which leads nowhere'),
    ],
)
def test_columns_that_nothing_can_fill(columns: list[tuple[str, str]], paths: dict[str, str], text: str) -> None:
    assert text in str(_error("E751", lambda: Payloads(columns, paths)))


# Options


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"host": ""}, '"host" of the MQTT source is missing'),
        ({"client": ""}, '"client" of the MQTT source is missing'),
        ({"port": "x"}, '"port" of the MQTT source is a number, not "x"'),
        ({"port": "70000"}, '"port" of the MQTT source is from 1 to 65535, not 70000'),
        ({"qos": "2"}, '"qos" of the MQTT source is 0 or 1, not 2'),
        ({"tls": "yes"}, '"tls" of the MQTT source is true or false, not "yes"'),
    ],
)
def test_options_that_do_not_fit(change: dict[str, str], text: str) -> None:
    pytest.importorskip("paho")
    given = {"host": "h", "topic": "t", "client": "c"}
    assert read_options(given).port == 1883
    assert text in str(_error("E751", lambda: read_options(given | change)))


def test_without_paho_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("whorl.connectors.mqtt.find_spec", lambda _name: None)
    assert "pip install 'whorl[mqtt]'" in str(_error("E755", lambda: read_options({})))


def test_a_broker_that_is_not_there(tmp_path: Path) -> None:
    pytest.importorskip("paho")
    options = read_options({"host": "127.0.0.1", "port": "1", "topic": "t", "client": "c"})
    error = _error("E756", lambda: MqttReceiver(options, tmp_path))
    assert 'the MQTT broker 127.0.0.1:1 does not serve "t"' in str(error)
    JournalWriter(tmp_path, wait_s=0).close()  # is free again


# With a broker


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    pytest.importorskip("paho")
    if MOSQUITTO is None:
        pytest.skip(WHY_NOT)
    broker = Broker(tmp_path / "broker")
    yield broker
    broker.stop()


CHILD = """
import os, sys, time
from pathlib import Path
from whorl.connectors.journal import JournalWriter
from whorl.connectors.mqtt import MqttReceiver, read_options

if sys.argv[3] == "unwritten":
    JournalWriter.append = lambda self, messages: time.sleep(60)
elif sys.argv[3] == "unanswered":
    append = JournalWriter.append
    JournalWriter.append = lambda self, messages: (append(self, messages), print("written", flush=True), time.sleep(60))
MqttReceiver(read_options({"host": "127.0.0.1", "port": sys.argv[1], "topic": "t", "client": "c"}), Path(sys.argv[2]))
print("listening", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize(("moment", "copies"), [("unwritten", 1), ("unanswered", 2)])
def test_a_message_survives_a_receiver_that_is_killed(broker: Broker, tmp_path: Path, moment: str, copies: int) -> None:
    folder = tmp_path / "journal"
    command = [sys.executable, "-c", CHILD, str(broker.port), str(folder), moment]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "listening\n"
    broker.publish("t", ["one"])
    if moment == "unanswered":
        assert child.stdout.readline() == "written\n"
    child.kill()
    child.wait()
    broker.publish("t", ["two"])
    options = {"host": "127.0.0.1", "port": str(broker.port), "topic": "t", "client": "c"}
    receiver = MqttReceiver(read_options(options), folder)
    until = time.monotonic() + 20
    while receiver.wait(copies, 0.1) < copies + 1 and time.monotonic() < until:
        pass
    payloads = [message.payload for message in receiver.journal.read(0, receiver.end)]
    receiver.close()
    assert payloads == [b"one"] * copies + [b"two"]
