"""Messages of an MQTT broker into a journal, and to the broker the word that they are safe.

A broker forgets a message when it is acknowledged, so that happens after the journal has it on the disk. With QoS 1 and
a session that the broker keeps under the client's name, what is published while nobody listens waits at the broker.
Between the journal and the acknowledgement a crash leaves a message that comes twice, never one that is lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Condition, Event, Thread
from time import time
from typing import Any

from whorl.connectors.journal import JournalWriter, Message
from whorl.diagnostics.errors import UserError

CONNECT_S = 10.0
_AT_ONCE = 1_000  # messages that share a visit to the disk


@dataclass(frozen=True, slots=True)
class MqttOptions:
    """Where to listen, for what, and who asks."""

    host: str
    port: int
    topic: str
    qos: int
    client: str
    username: str | None
    password: str | None
    tls: bool


def read_options(given: Mapping[str, str]) -> MqttOptions:
    """Check options; raise at the first that does not fit."""
    if find_spec("paho") is None:
        raise UserError("E755")
    for name in ("host", "topic", "client"):
        if not given.get(name):
            raise UserError("E751", None, name=name, reason="is missing")
    port, qos = (_number(given, name, usual) for name, usual in (("port", "1883"), ("qos", "1")))
    if not 0 < port < 65_536:
        raise UserError("E751", None, name="port", reason=f"is from 1 to 65535, not {port}")
    if qos not in (0, 1):
        raise UserError("E751", None, name="qos", reason=f"is 0 or 1, not {qos}")
    tls = given.get("tls", "false").lower()
    if tls not in ("true", "false"):
        raise UserError("E751", None, name="tls", reason=f'is true or false, not "{tls}"')
    names = given["host"], port, given["topic"], qos, given["client"]
    return MqttOptions(*names, given.get("username"), given.get("password"), tls == "true")


def _number(given: Mapping[str, str], name: str, usual: str) -> int:
    text = given.get(name, usual)
    if not text.isdecimal():
        raise UserError("E751", None, name=name, reason=f'is a number, not "{text}"')
    return int(text)


class MqttReceiver:
    """Listens from when it is made until it is closed; messages arrive in the journal."""

    def __init__(self, options: MqttOptions, folder: Path) -> None:
        self.journal = JournalWriter(folder)
        self._options = options
        self._arrived: SimpleQueue[tuple[Message, int, int]] = SimpleQueue()
        self._grown = Condition()
        self._answered = Event()
        self._refusal = ""
        self._closed = False
        self._failure: BaseException | None = None
        self._client = self._connect()
        Thread(target=self._write, name="whorl-mqtt-journal", daemon=True).start()

    @property
    def end(self) -> int:
        """How many messages the journal has had so far."""
        if self._failure is not None:
            raise self._failure
        return self.journal.end

    def wait(self, beyond: int, seconds: float) -> int:
        """Wait until there is a message beyond a number, or for so long; return `end`."""
        with self._grown:
            self._grown.wait_for(lambda: self.journal.end > beyond or self._failure is not None, seconds)
        return self.end

    def close(self) -> None:
        """Stop to listen. The broker keeps the session, and what is published from now on."""
        self._client.disconnect()
        self._client.loop_stop()
        self._closed = True
        with self._grown:
            self.journal.close()

    # The client's own thread

    def _connect(self) -> Any:  # paho's client
        from paho.mqtt.client import Client, MQTTv311  # noqa: PLC0415 - an extra
        from paho.mqtt.enums import CallbackAPIVersion  # noqa: PLC0415 - an extra

        own = self._options
        client = Client(
            CallbackAPIVersion.VERSION2, own.client, clean_session=own.qos == 0, protocol=MQTTv311, manual_ack=True
        )
        if own.username is not None:
            client.username_pw_set(own.username, own.password)
        if own.tls:
            client.tls_set()
        client.on_connect, client.on_subscribe, client.on_message = self._connected, self._subscribed, self._take
        try:
            client.connect(own.host, own.port)
        except (OSError, ValueError) as error:
            self.journal.close()
            raise self._no_broker(str(error)) from None
        client.loop_start()
        if not self._answered.wait(CONNECT_S) or self._refusal:
            client.loop_stop()
            self.journal.close()
            raise self._no_broker(self._refusal or f"no answer for {CONNECT_S:g} s")
        return client

    def _no_broker(self, reason: str) -> UserError:
        own = self._options
        return UserError("E756", None, host=own.host, port=own.port, topic=own.topic, reason=reason)

    def _connected(self, client: Any, _data: Any, _flags: Any, code: Any, _properties: Any) -> None:
        """Subscribe, again after each time the connection was lost."""
        if code.is_failure:
            self._refusal = str(code)
            self._answered.set()
        else:
            client.subscribe(self._options.topic, self._options.qos)

    def _subscribed(self, _client: Any, _data: Any, _mid: int, codes: Any, _properties: Any) -> None:
        self._refusal = next((str(code) for code in codes if code.is_failure), "")
        self._answered.set()

    def _take(self, _client: Any, _data: Any, message: Any) -> None:
        self._arrived.put((Message(message.topic, message.payload, time()), message.mid, message.qos))

    # The thread that writes

    def _write(self) -> None:
        while not self._closed:
            batch = self._next_batch()
            try:
                with self._grown:
                    if not batch or self._closed:
                        continue
                    self.journal.append([message for message, _mid, _qos in batch])
                    self._grown.notify_all()
            except Exception as error:  # a full disk, say: nothing is acknowledged any more, and whoever reads is told
                self._failure = error
                return
            for _message, mid, qos in batch:
                if qos:
                    self._client.ack(mid, qos)

    def _next_batch(self) -> list[tuple[Message, int, int]]:
        batch = []
        try:
            batch.append(self._arrived.get(timeout=0.2))
            while len(batch) < _AT_ONCE:
                batch.append(self._arrived.get_nowait())
        except Empty:
            pass
        return batch
