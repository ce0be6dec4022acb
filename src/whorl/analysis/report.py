"""What `check` prints: the facts found in a program, as text for people and as data for machines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from whorl.analysis.program import Program, Query, Relation, Stratum
from whorl.syntax.printer import print_expr


def report_text(program: Program, strategies: Sequence[str]) -> str:
    """Describe relations, strata, windows and outputs; ``strategies`` are lines that stand below the strata."""
    lines: list[str] = []
    for title, section in (
        ("Inputs", [line for r in program.base_relations() for line in _relation_lines(r)]),
        ("Derived", [line for r in program.relations.values() if not r.base for line in _relation_lines(r)]),
        ("Strata", [line for n, s in enumerate(program.strata, 1) for line in _stratum_lines(n, s)]),
        ("Strategies", list(strategies)),
        ("Outputs", [f"{query.name}: {_shown_query(query, program)}" for query in program.queries]),
        ("Notes", list(program.notes)),
    ):
        if section:
            lines.append(title)
            lines.extend(f"  {line}" for line in section)
    return "\n".join(lines)


def _relation_lines(relation: Relation) -> Iterator[str]:
    columns = ", ".join(_column(relation, i) for i in range(len(relation.columns)))
    kind = f"{relation.kind} " if relation.base else ""
    yield f"{kind}{relation.name}({columns})"
    for fact in _lifetime(relation):
        yield f"  {fact}"


def _column(relation: Relation, position: int) -> str:
    text = str(relation.columns[position])
    function = relation.aggregates.get(position)
    return f"{text} = {function}" if function else text


def _lifetime(relation: Relation) -> Iterator[str]:
    if relation.lifted:
        yield "its timestamp is the tuple's time, not a column"
    if relation.window is not None:
        yield _window(relation)
    if relation.ttl is not None:
        yield f"facts live {relation.ttl} s after they arrive"


def _window(relation: Relation) -> str:
    window = relation.window
    assert window is not None
    unit = "facts" if window.counted else "s"
    slide = f", brought up to date every {window.slide} {unit}" if window.slide else ""
    return f"window of {window.size} {unit}{slide}"


def _stratum_lines(number: int, stratum: Stratum) -> Iterator[str]:
    kind = "recursive" if stratum.recursive else "once"
    if stratum.stages is not None:
        kind = "stage by stage"
    yield f"{number}. {', '.join(stratum.relations)}: {kind}; {stratum.termination} ({stratum.reason})"
    if stratum.stages is not None:
        where = ", ".join(f"column {column + 1} of {name}" for name, column in stratum.stages.columns.items())
        order = " then ".join("+".join(layer) for layer in stratum.stages.layers)
        yield f"   stage: {where}; inside a stage: {order}"


def _shown_query(query: Query, program: Program) -> str:
    """Return a query as it was written, or with the names of all columns if nobody wrote it."""
    args = [print_expr(arg) for arg in query.args]
    if query.span is None:
        args = [column.name for column in program.relations[query.relation].columns]
    return f"{query.relation}({', '.join(args)})"


def report_json(program: Program, strategies: Sequence[dict[str, object]] | None) -> dict[str, object]:
    """Return the same facts as plain data; ``strategies`` may be left open."""
    return {
        "relations": [_relation_json(relation) for relation in program.relations.values()],
        "strata": [_stratum_json(stratum) for stratum in program.strata],
        "strategies": None if strategies is None else list(strategies),
        "outputs": [{"name": query.name, "query": _shown_query(query, program)} for query in program.queries],
        "notes": list(program.notes),
    }


def _relation_json(relation: Relation) -> dict[str, object]:
    window = relation.window
    return {
        "name": relation.name,
        "kind": relation.kind,
        "columns": [{"name": c.name, "type": str(c.type), "key": c.key} for c in relation.columns],
        "lifted": relation.lifted,
        "window": {"size": window.size, "slide": window.slide, "counted": window.counted} if window else None,
        "ttl": relation.ttl,
        "aggregates": {str(i): function for i, function in relation.aggregates.items()},
    }


def _stratum_json(stratum: Stratum) -> dict[str, object]:
    stages = stratum.stages
    return {
        "relations": list(stratum.relations),
        "recursive": stratum.recursive,
        "stages": {"columns": dict(stages.columns), "bound": stages.bound} if stages else None,
        "termination": stratum.termination,
        "reason": stratum.reason,
    }
