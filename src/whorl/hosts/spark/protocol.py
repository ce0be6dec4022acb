"""What the driver asks of every partition, and what each answers.

A request travels as a property of the job, so the job itself is the same in every epoch and is planned once. It says
how the state that is meant came about (`history`, oldest first), so that a worker that has it, has an older one, or has
none comes to the same state.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from whorl.diagnostics.errors import UserError
from whorl.hosts.spark.afar import own_layout
from whorl.hosts.spark.layout import Layout
from whorl.hosts.spark.shares import ShareFile
from whorl.kernel.partition import StepResult
from whorl.model.report import Shipment
from whorl.model.values import Row

PROPERTY = "whorl.request"
STEP, GO_ON, ROWS, FACTS, TAKE, IDLE = "step", "go on", "rows", "facts", "take", "idle"
TAKE_FILES = "take files"


@dataclass(frozen=True, slots=True)
class Request:
    """One thing that all partitions do.

    `history` starts with the oldest state that can still be had, and ends with the state to start from; each token
    between names an entry of the log. `snapshots` are those of them whose state was saved. `origin` tells partitions
    that started from the facts of others where those are, and which relations were split; those that take over, how
    many others have written the history.
    """

    do: str
    deployment: str
    folder: str
    plan: str
    partitions: int
    history: Sequence[str]
    snapshots: Sequence[str] = ()
    origin: Origin | None = None
    entry: str = ""
    view: str = ""
    emit: str = "rows"  # where the changes of views go: `rows` in the reply, or `files`
    save: bool = False  # whether the state to start from is saved first
    durable: bool = False
    fed: Fed | None = None  # tells that rows come with the job; else they are in the log
    turn: int = 0  # of the exchange: how often partitions have gone on with an epoch
    attempt: int = 0  # at the epoch: another one if a worker was lost in the middle
    ballot: int = 0  # what partitions said before this turn, together
    quiet: bool = False  # whether nobody had anything left to send
    room: int = 0  # how often labels have been given more room
    shared: bool = True  # whether workers reach the folder themselves
    absent: Sequence[str] = ()  # files that the store has not got
    wanted: Mapping[str, Sequence[str]] = field(default_factory=dict)  # files that come with the job, by partition
    most_bytes: int = 0  # of files that go with a reply
    once: bool = False  # whether nobody asks again, so that partitions need not stay

    @property
    def layout(self) -> Layout:
        """The folder: the one that all share, or one of this machine."""
        return Layout(Path(self.folder)) if self.shared else own_layout(self.deployment, self.absent)

    def to_json(self) -> str:
        """Return the request as text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Request:
        """Read a request."""
        fields = json.loads(text)
        origin, fed = fields.pop("origin"), fields.pop("fed")
        return cls(
            **fields, origin=None if origin is None else Origin(**origin), fed=None if fed is None else Fed(**fed)
        )


@dataclass(frozen=True, slots=True)
class Origin:
    """Base facts of partitions of another plan: their token, their number, and the relations that were split."""

    token: str
    partitions: int
    split: Sequence[str]


@dataclass(frozen=True, slots=True)
class Fed:
    """How the rows that come with a job are read.

    `reader` names the file that tells their columns. They come as they are, or, if they are many, as notes on shares
    that other tasks have written. `time` is the event time before them; `facts` says that those of the program come
    first.
    """

    reader: str
    many: bool
    time: int | None
    facts: bool


@dataclass(frozen=True, slots=True)
class Brought:
    """What came with a job: shares for the log, counts, the latest event time; `digest` tells all of it from others."""

    shares: Mapping[str, bytes] = field(default_factory=dict)
    files: Sequence[ShareFile] = ()
    rows: int = 0
    time: int | None = None
    misfits: Mapping[str, int] = field(default_factory=dict)  # rows that did not fit, by relation
    digest: int = 0


@dataclass(frozen=True, slots=True)
class Waiting:
    """A partition that stands in the middle of an epoch: whether it waits for all, what it says, what it has sent."""

    for_all: bool
    ballot: int
    shipped: Sequence[Shipment]


@dataclass(frozen=True, slots=True)
class Reply:
    """What one partition answers. An error of the user's is an answer too: asking again would not help."""

    number: int
    process: int
    result: StepResult | None = None
    changed: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # rows inserted and deleted, by view
    rows: Sequence[Row] = ()
    brought: Brought | None = None
    state_bytes: int = 0
    caught_up: int = 0  # entries of the log applied before
    restored: bool = False  # whether the state came from files
    waiting: Waiting | None = None  # for others, before it can go on
    lost: bool = False  # whether it knows nothing of the epoch that it should go on with
    cramped: bool = False  # whether labels need more room than there is
    files: Mapping[str, bytes] = field(default_factory=dict)  # for the store, which this machine does not reach
    held: Sequence[str] = ()  # folders of such files that are too large to go with the reply
    lacking: Sequence[str] = ()  # files that it must be given before it can answer
    error: UserError | None = None
