"""Frames that stream the messages of an MQTT broker, and views over them that miss none."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import whorl
from tests.spark.feeding import REACH, rows_of
from tests.spark.mqtt_broker import MOSQUITTO, WHY_NOT, Broker
from whorl.diagnostics.errors import UserError

pytestmark = pytest.mark.xdist_group("spark")  # one process, and one session, for all

pytest.importorskip("paho")


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    if MOSQUITTO is None:
        pytest.skip(WHY_NOT)
    broker = Broker(tmp_path / "broker")
    yield broker
    broker.stop()


def links(spark: Any, port: int, folder: Path) -> Any:
    return whorl.MqttSource.stream(
        spark,
        "op string, x string, y string",
        {"x": "@topic.2", "y": "link.to"},
        host="127.0.0.1",
        port=port,
        topic="links/#",
        client="whorl-test",
        journal=folder / "journal",
    )


def _await(query: Any, expected: set[tuple[str, str]]) -> None:
    until = time.monotonic() + 60
    found = None
    while found != expected and time.monotonic() < until:
        query.processAllAvailable()
        found = rows_of(query.snapshot("reachable")) if query.epoch else set()
    assert found == expected


def test_a_view_follows_messages_also_those_sent_while_nobody_listened(
    spark: Any, broker: Broker, tmp_path: Path
) -> None:
    query = whorl.stream(spark, REACH, {"link": links(spark, broker.port, tmp_path)}, checkpoint=tmp_path / "state")
    try:
        query.processAllAvailable()  # the session at the broker is there
        broker.publish("links/a", ['{"op": "+", "link": {"to": "b"}}', "no JSON"])
        broker.publish("links/b", ['{"op": "+", "link": {"to": "c"}}'])
        _await(query, {("a", "b"), ("b", "c"), ("a", "c")})
    finally:
        query.stop()
    broker.publish("links/b", ['{"op": "-", "link": {"to": "c"}}', '{"op": "+", "link": {"to": "d"}}'])
    again = whorl.stream(spark, REACH, {"link": links(spark, broker.port, tmp_path)}, checkpoint=tmp_path / "state")
    try:
        _await(again, {("a", "b"), ("b", "d"), ("a", "d")})
    finally:
        again.stop()


def test_a_batch_that_failed_is_read_again_the_same(spark: Any, broker: Broker, tmp_path: Path) -> None:
    taken: list[tuple[int, list[str]]] = []

    def take(frame: Any, batch: int) -> None:
        taken.append((batch, [row["payload"] for row in frame.select("payload").collect()]))
        if len(taken) == 2:
            message = "the first time fails"
            raise RuntimeError(message)

    options: dict[str, Any] = {"host": "127.0.0.1", "topic": "t", "client": "again"}
    options |= {"port": broker.port, "journal": tmp_path / "journal"}

    def start() -> Any:
        frame = whorl.MqttSource.stream(spark, **options)
        return frame.writeStream.foreachBatch(take).option("checkpointLocation", str(tmp_path / "state")).start()

    def await_batches(count: int) -> None:
        until = time.monotonic() + 60
        while len(taken) < count and time.monotonic() < until:
            time.sleep(0.05)

    query = start()
    await_batches(1)  # Spark begins with a batch of nothing; by then the source has subscribed
    broker.publish("t", ["one"])
    with pytest.raises(Exception, match="the first time fails"):
        query.awaitTermination(60)
    broker.publish("t", ["two"])
    query = start()
    await_batches(4)
    query.stop()
    assert taken == [(0, []), (1, ["one"]), (1, ["one"]), (2, ["two"])]


DRIVER = """
import sys
from pathlib import Path
import whorl
from tests.spark.conftest import SETTINGS
from tests.spark.feeding import REACH
from tests.spark.test_mqtt import links

port, folder = int(sys.argv[1]), Path(sys.argv[2])
spark = whorl.spark_session("local[2]", SETTINGS)
query = whorl.stream(spark, REACH, {"link": links(spark, port, folder)}, checkpoint=folder / "state",
                     on_epoch=lambda epoch: print(epoch.number, flush=True))
query.awaitTermination()
"""


@pytest.mark.slow
def test_no_message_is_missing_after_the_driver_was_killed(spark: Any, broker: Broker, tmp_path: Path) -> None:
    command = [sys.executable, "-c", DRIVER, str(broker.port), str(tmp_path)]
    driver = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])
    assert driver.stdout is not None
    assert driver.stdout.readline() == "1\n"  # a batch of nothing: it listens
    expected = set()
    for number in range(60):
        broker.publish(f"links/a{number}", [f'{{"op": "+", "link": {{"to": "b{number}"}}}}'])
        expected.add((f"a{number}", f"b{number}"))
        if number == 30:
            os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    query = whorl.stream(spark, REACH, {"link": links(spark, broker.port, tmp_path)}, checkpoint=tmp_path / "state")
    try:
        _await(query, expected)
    finally:
        query.stop()


def test_options_are_checked_before_anything_starts(spark: Any, tmp_path: Path) -> None:
    given: dict[str, Any] = {"host": "127.0.0.1", "topic": "t", "client": "c", "journal": tmp_path / "j"}
    for change, text in (
        ({"journal": ""}, '"journal" of the MQTT source is missing'),
        ({"quality": 1}, '"quality" of the MQTT source is none of client, host'),
        ({"most": 0}, '"most" of the MQTT source is a number from 1 on, not "0"'),
    ):
        with pytest.raises(UserError) as caught:
            whorl.MqttSource.stream(spark, **given | change)
        assert caught.value.code == "E751"
        assert text in str(caught.value)
    with pytest.raises(UserError, match="has x of type array<int>"):
        whorl.MqttSource.stream(spark, "x array<int>", **given)
