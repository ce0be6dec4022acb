"""The meaning of each step of a rule: bindings in, bindings out. Plain dictionaries, no cleverness but one index."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from whorl.analysis.expressions import Binding, Functions, calculates, compare, evaluate, held, is_pattern, match, same
from whorl.analysis.program import parts
from whorl.logical.plan import AntiJoin, Extend, Filter, Join, Lacks, Project, RulePlan, SemiJoin, Step, Unnest
from whorl.model.values import LIST, ExactRow, Row, Term, Value
from whorl.syntax import ast

Database = Mapping[str, set[Row]]


def run_rule(rule: RulePlan, database: Database, functions: Functions) -> list[Binding]:
    """Return every binding under which the body of a rule holds."""
    bindings: list[Binding] = [{}]
    for step in rule.steps:
        if not bindings:
            return []
        bindings = list(_run(step, bindings, database, functions))
    return bindings


def _run(step: Step, bindings: list[Binding], database: Database, functions: Functions) -> Iterable[Binding]:
    if isinstance(step, Join | SemiJoin | AntiJoin):
        return _join(step, bindings, database, functions)
    if isinstance(step, Project):
        return _project(step, bindings)
    return [out for binding in bindings for out in _run_one(step, binding, functions)]


def _run_one(step: Step, binding: Binding, functions: Functions) -> Iterator[Binding]:
    if isinstance(step, Filter):
        left, right = evaluate(step.left, binding, functions), evaluate(step.right, binding, functions)
        if left is not None and right is not None and compare(step.operator, left, right):
            yield binding
    elif isinstance(step, Extend):
        value = evaluate(step.value, binding, functions)
        extended = None if value is None else match(step.pattern, value, binding, functions)
        if extended is not None:
            yield extended
    else:
        assert isinstance(step, Unnest | Lacks)
        items = evaluate(step.items, binding, functions)
        if not isinstance(items, Term) or items.name != LIST:
            return
        found = (match(step.item, item, binding, functions) for item in items.args)
        extended_by_item = [out for out in found if out is not None]
        if isinstance(step, Unnest):
            yield from _distinct(extended_by_item)
        elif not extended_by_item and _has_value(step.item, binding, functions):
            yield binding


def _project(step: Project, bindings: list[Binding]) -> Iterator[Binding]:
    return _distinct({name: binding[name] for name in step.columns} for binding in bindings)


def _distinct(bindings: Iterable[Binding]) -> Iterator[Binding]:
    seen: set[frozenset[tuple[str, type, Value]]] = set()
    for binding in bindings:
        key = frozenset((name, type(value), value) for name, value in binding.items())
        if key not in seen:
            seen.add(key)
            yield binding


def _join(
    step: Join | SemiJoin | AntiJoin, bindings: list[Binding], database: Database, functions: Functions
) -> Iterator[Binding]:
    known = [i for i, arg in enumerate(step.args) if _is_known(arg, bindings[0])]
    index: dict[Row, list[Row]] = defaultdict(list)
    for row in database[step.relation]:
        index[tuple(row[i] for i in known)].append(row)
    for binding in bindings:
        values = (evaluate(step.args[i], binding, functions) for i in known)
        candidates = index.get(tuple(value for value in values if value is not None), ())
        fitting = _fitting(step.args, candidates, binding, functions)
        if isinstance(step, Join):
            yield from fitting
        elif isinstance(step, SemiJoin):
            if any(True for _ in fitting):
                yield binding
        elif not any(True for _ in fitting) and all(_has_value(arg, binding, functions) for arg in step.args):
            yield binding


def _has_value(arg: ast.Expr, binding: Binding, functions: Functions) -> bool:
    """Whether all that an argument calculates has a value: where it has none, nothing is absent either."""
    if isinstance(arg, ast.Anonymous):
        return True
    if is_pattern(arg, functions):
        return all(_has_value(part, binding, functions) for part in parts(arg))
    return evaluate(arg, binding, functions) is not None


def _is_known(arg: ast.Expr, binding: Binding) -> bool:
    return isinstance(arg, ast.Constant) or (isinstance(arg, ast.Variable) and arg.name in binding)


def _fitting(
    args: tuple[ast.Expr, ...], rows: Iterable[Row], binding: Binding, functions: Functions
) -> Iterator[Binding]:
    """Yield ``binding`` extended by each row that fits; rows that differ only in anonymous columns count once."""
    results: list[Binding] = []
    for row in rows:
        current: Binding | None = binding
        exact = isinstance(row, ExactRow)
        for arg, value in zip(args, row, strict=True):
            fits = same if exact and not calculates(arg, functions) else held
            current = None if current is None else match(arg, value, current, functions, fits=fits)
        if current is not None:
            results.append(current)
    return _distinct(results) if len(results) > 1 else iter(results)
