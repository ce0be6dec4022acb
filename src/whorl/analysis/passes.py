"""The passes of the analysis, in their order: syntax tree in, checked `Program` out.

A pass takes the draft and returns it with its finding added, and reports every error it sees. The passes up to
`names and arity` lay the ground: later ones run only if these saw no error. The later ones do not rely on each other's
success, so that one run finds the mistakes of all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

from whorl.analysis.declarations import resolve_declarations
from whorl.analysis.draft import Draft, Errors
from whorl.analysis.lifting import lift_timestamps
from whorl.analysis.names import resolve_names
from whorl.analysis.normalize import normalize_rules, resolve_queries
from whorl.analysis.program import Program
from whorl.analysis.safety import check_safety
from whorl.analysis.strata import resolve_aggregates, stratify
from whorl.analysis.termination import classify_termination
from whorl.analysis.types import infer_types
from whorl.analysis.windows import resolve_windows
from whorl.diagnostics.errors import ProgramErrors
from whorl.model.builtins import BUILTINS
from whorl.model.functions import Function
from whorl.model.types import Type
from whorl.syntax import ast

Pass = Callable[[Draft, Errors], Draft]

PASSES: tuple[tuple[str, Pass], ...] = (
    ("declarations", resolve_declarations),
    ("flat rules", normalize_rules),
    ("queries", resolve_queries),
    ("names and arity", resolve_names),
    ("timestamp lifting", lift_timestamps),
    ("types", infer_types),
    ("safety", check_safety),
    ("aggregates", resolve_aggregates),
    ("strata, stages, monotone aggregates", stratify),
    ("windows", resolve_windows),
    ("termination", classify_termination),
)
GROUND = "names and arity"


@dataclass(frozen=True, slots=True)
class PassTime:
    """How long a pass took."""

    name: str
    seconds: float


def analyze(
    text: ast.Program,
    functions: Sequence[Function] = (),
    data_types: Mapping[str, Sequence[Type]] | None = None,
    times: list[PassTime] | None = None,
) -> Program:
    """Check a program and find out what the later stages need to know.

    ``data_types`` gives the column types of undeclared base relations, once data has told them.
    """
    draft = Draft(text, {**BUILTINS, **{function.name: function for function in functions}})
    errors = Errors()
    for name, run in PASSES:
        started = perf_counter()
        draft = run(draft, errors)
        if name == GROUND and data_types:
            draft = _with_data_types(draft, data_types)
        if times is not None:
            times.append(PassTime(name, perf_counter() - started))
        if errors.found and name in (GROUND, PASSES[-1][0]):
            raise ProgramErrors(errors.found)
    return Program(
        draft.relations,
        draft.rules,
        draft.facts,
        draft.queries,
        draft.strata,
        draft.functions,
        draft.trending,
        draft.notes,
    )


def _with_data_types(draft: Draft, data_types: Mapping[str, Sequence[Type]]) -> Draft:
    relations = dict(draft.relations)
    for name, types in data_types.items():
        relation = relations.get(name)
        if relation is None or relation.declared or len(types) != len(relation.columns):
            continue
        columns = tuple(replace(c, type=t) for c, t in zip(relation.columns, types, strict=True))
        relations[name] = replace(relation, columns=columns)
    return replace(draft, relations=relations)
