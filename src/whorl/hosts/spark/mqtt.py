"""MQTT as a source of streaming frames, for queries of Whorl and any other.

    links = whorl.MqttSource.stream(spark, "x string, y string", host="broker", topic="links/#",
                                    client="whorl-links", journal="state/links-journal")

Spark reads in one Python process beside its driver. There a receiver writes what arrives into a journal; an offset is
the number of a message in it. Spark's checkpoint has the offsets, the journal the messages: they belong together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader

from whorl.connectors.journal import Journal
from whorl.connectors.mqtt import MqttReceiver, read_options
from whorl.connectors.payloads import Payloads
from whorl.diagnostics.errors import UserError

if TYPE_CHECKING:  # Spark imports this file in processes of its own, where every import is waited for
    from whorl.hosts.spark.lanes import Frame

FORMAT = "whorl-mqtt"
_PLAIN = "topic string, payload string, received timestamp"
_NAMES = frozenset({"host", "port", "topic", "qos", "client", "username", "password", "tls", "journal", "most"})
_MAP = "map."
_WAIT_S = 0.02  # how long a read waits for a message: long enough to spare the processor, too short to be felt


class MqttSource(DataSource):  # type: ignore[misc]  # pyspark is not followed
    """The source; `stream` is the short way to it."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name, for `spark.readStream.format`."""
        return FORMAT

    @classmethod
    def stream(
        cls, spark: Any, schema: str | None = None, paths: Mapping[str, str] | None = None, **options: object
    ) -> Frame:
        """Return a frame that streams the messages of a topic.

        ``schema`` has the columns, as Spark writes them; without it there are topic, payload and received. ``paths``
        tells for a column where in the payload its value is, if not under the column's name. The options are host,
        port, topic, qos, client, username, password, tls, journal, and most, the largest number of rows in a batch.
        """
        given = {name: str(value).lower() if value in (True, False) else str(value) for name, value in options.items()}
        given |= {f"{_MAP}{column}": path for column, path in (paths or {}).items()}
        _check(given)
        given["journal"] = str(Path(given["journal"]).absolute())  # for processes with a folder of their own
        spark.dataSource.register(cls)
        reader = spark.readStream.format(FORMAT).options(**given)
        frame = (reader if schema is None else reader.schema(schema)).load()
        _payloads(frame.schema, given)
        return frame

    def schema(self) -> str:
        """Return the columns for whoever names none."""
        return _PLAIN

    def simpleStreamReader(self, schema: Any) -> MqttReader:  # noqa: N802 - Spark's name
        """Return what reads."""
        return MqttReader(schema, dict(self.options))


class MqttReader(SimpleDataSourceStreamReader):  # type: ignore[misc]  # pyspark is not followed
    """Reads the journal; where Spark asks for new messages, it also listens. Copies go to tasks, to read again."""

    def __init__(self, schema: Any, options: dict[str, str]) -> None:
        _check(options)
        self._schema, self._options = schema, options
        self._receiver: MqttReceiver | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Begin with what the journal has kept."""
        return {"message": self._listening().journal.first}

    def read(self, start: dict[str, int]) -> tuple[Iterator[tuple[Any, ...]], dict[str, int]]:
        """Return what arrived since, and up to where."""
        receiver, first = self._listening(), start["message"]
        last = min(receiver.wait(first, _WAIT_S), first + int(self._options.get("most", "10000")))
        if last < first:
            journal = receiver.journal
            raise UserError("E754", None, path=journal.folder, wanted=first - 1, first=journal.first)
        rows = _payloads(self._schema, self._options)
        return iter([rows.row(message) for message in receiver.journal.read(first, last)]), {"message": last}

    def readBetweenOffsets(  # noqa: N802 - Spark's name
        self, start: dict[str, int], end: dict[str, int]
    ) -> Iterator[tuple[Any, ...]]:
        """Read a batch again, the same as before."""
        rows = _payloads(self._schema, self._options)
        return map(rows.row, Journal(Path(self._options["journal"])).read(start["message"], end["message"]))

    def commit(self, end: dict[str, int]) -> None:
        """Forget what no batch will ask for again."""
        self._listening().journal.prune(end["message"])

    def _listening(self) -> MqttReceiver:
        """Listen from the first time on; making a reader does not, for Spark makes several."""
        if self._receiver is None:
            self._receiver = MqttReceiver(read_options(self._options), Path(self._options["journal"]))
        return self._receiver


def _check(options: Mapping[str, str]) -> None:
    for name in options:
        if name.lower() not in _NAMES and not name.lower().startswith(_MAP):
            raise UserError("E751", None, name=name, reason=f"is none of {', '.join(sorted(_NAMES))}")
    read_options(options)
    if not options.get("journal"):
        raise UserError("E751", None, name="journal", reason="is missing")
    most = options.get("most", "1")
    if not most.isdecimal() or int(most) < 1:
        raise UserError("E751", None, name="most", reason=f'is a number from 1 on, not "{most}"')


def _payloads(schema: Any, options: Mapping[str, str]) -> Payloads:
    columns = [(field.name, field.dataType.simpleString()) for field in schema.fields]
    paths = {name[len(_MAP) :]: path for name, path in options.items() if name.lower().startswith(_MAP)}
    if not paths and ", ".join(f"{name} {kind}" for name, kind in columns) == _PLAIN:
        paths = {name: f"@{name}" for name, _kind in columns}
    return Payloads(columns, paths)
