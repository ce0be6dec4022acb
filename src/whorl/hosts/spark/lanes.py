"""Data frames on their way to base relations: which column goes where, and all inputs as one frame.

The columns of a frame are matched as those of any table: by the names of the declaration, or by position. Types that
the program leaves open are those of the frame. Then all inputs become one frame, so that one query reads them all: a
number that tells the relation, the operation, and a column for each attribute of each relation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias

from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it
from pyspark.sql import types as spark_types

from whorl.connectors.target import Target, match_columns, target_of
from whorl.diagnostics.errors import UserError
from whorl.hosts.routing import routing_place
from whorl.logical.intake import Compile, Intake
from whorl.model.types import Type
from whorl.physical.plan import PhysicalPlan

Frame: TypeAlias = Any  # a DataFrame of pyspark
Expression: TypeAlias = Any  # a Column of pyspark
NUMBER, OPERATION = "relation", "op"

_TYPES: tuple[tuple[tuple[type, ...], Type], ...] = (
    (
        (spark_types.ByteType, spark_types.ShortType, spark_types.IntegerType, spark_types.LongType),
        Type.INTEGER,
    ),
    ((spark_types.FloatType, spark_types.DoubleType), Type.FLOAT),
    ((spark_types.StringType,), Type.STRING),
    ((spark_types.BooleanType,), Type.BOOLEAN),
    ((spark_types.TimestampType, spark_types.TimestampNTZType, spark_types.DateType), Type.TIMESTAMP),
    ((spark_types.ArrayType,), Type.LIST),
)


@dataclass(frozen=True, slots=True)
class Lane:
    """A base relation as its rows see it on the way in; `place` is the attribute that tells the partition."""

    target: Target
    timed: bool
    place: int | None


@dataclass(frozen=True, slots=True)
class Matched:
    """A frame whose columns are matched with the attributes of a relation."""

    target: Target
    frame: Frame
    columns: tuple[Expression, ...]
    operation: Expression


def match_inputs(
    inputs: Mapping[str, Frame],
    compile_plan: Compile,
    names: Mapping[str, Sequence[str]],
    event_time: Mapping[str, str],
) -> tuple[list[Matched], dict[str, list[Type]]]:
    """Match every frame with its relation; return also the types that frames tell."""
    intake = Intake(compile_plan)
    for name in event_time:
        if name not in inputs:
            raise UserError("E806", None, name=name)
    matched: list[Matched] = []
    learnt: dict[str, list[Type]] = {}
    for name, frame in inputs.items():
        relation = intake.relation(name)
        target = target_of(relation, names.get(name))
        found, types = _match(target, frame, event_time.get(name))
        matched.append(found)
        if not relation.declared:
            learnt[name] = types
    return matched, learnt


def _match(target: Target, frame: Frame, event_time: str | None) -> tuple[Matched, list[Type]]:
    if not hasattr(frame, "isStreaming"):
        raise UserError("E804", None, name=target.relation, found=type(frame).__name__)
    fields = {field.name: field.dataType for field in frame.schema.fields}
    declared = [name.lower() for name in target.names or ()]
    has_operation = OPERATION in fields and OPERATION not in declared
    columns = [name for name in fields if not (has_operation and name == OPERATION)]
    shown = list(columns)
    if event_time is not None:
        if event_time not in fields or not target.types or target.types[0] is not Type.TIMESTAMP:
            raise UserError("E807", None, name=target.relation, column=event_time, found=", ".join(columns))
        first = target.names[0] if target.names else event_time
        shown = [first if name == event_time else name for name in columns if name == event_time or name != first]
        columns = [name for name in columns if name == event_time or name != first]
    places = match_columns(target, shown, f"the frame for {target.relation}")
    expressions, types = [], []
    for at, place in enumerate(places):
        name = columns[place]
        expression, kind = _attribute(target, at, name, fields[name])
        expressions.append(expression)
        types.append(kind)
    operation = F.col(OPERATION).cast("string") if has_operation else F.lit("+")
    return Matched(target, frame, tuple(expressions), operation.alias(OPERATION)), types


def _attribute(target: Target, at: int, name: str, found: Any) -> tuple[Expression, Type]:
    """Return the expression for an attribute, and its type; raise if the column cannot hold it."""
    column = F.col(f"`{name.replace('`', '``')}`")
    kind = next((kind for classes, kind in _TYPES if isinstance(found, classes)), None)
    expected = target.types[at]
    if kind is None:
        raise UserError("E805", None, name=target.relation, column=name, found=found.simpleString(), expected=expected)
    if kind is Type.TIMESTAMP:
        moment = F.unix_date(column) * F.lit(86400) if isinstance(found, spark_types.DateType) else column
        column = moment.cast("timestamp").cast("long") if moment is column else moment.cast("long")
    fits = (
        expected in (Type.UNKNOWN, kind)
        or (kind is Type.INTEGER and expected in (Type.FLOAT, Type.TIMESTAMP))
        or (kind is Type.STRING and expected in (Type.LIST, Type.TERM))
    )
    if not fits:
        raise UserError("E805", None, name=target.relation, column=name, found=found.simpleString(), expected=expected)
    told = Type.INTEGER if kind is Type.TIMESTAMP else kind
    return column, told if expected is Type.UNKNOWN else expected


def gather(matched: Sequence[Matched], wanted: Callable[[Matched], bool] = lambda _each: True) -> Frame:
    """Return all inputs that are wanted as one frame; each has the number that it has among all."""
    frames = [
        each.frame.select(
            F.lit(number).alias(NUMBER),
            each.operation,
            *(column.alias(column_name(number, at)) for at, column in enumerate(each.columns)),
        )
        for number, each in enumerate(matched)
        if wanted(each)
    ]
    return reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), frames)


def column_name(number: int, at: int) -> str:
    """Return the column of the gathered frame for an attribute of an input."""
    return f"r{number}c{at}"


def lanes_of(matched: Sequence[Matched], plan: PhysicalPlan) -> list[Lane]:
    """Return what tasks must know to check and route the rows of a gathered frame."""
    found = []
    for each in matched:
        relation = plan.relations[each.target.relation]
        target = target_of(relation, each.target.names)
        found.append(Lane(target, relation.timed, routing_place(plan, relation.name)))
    return found
