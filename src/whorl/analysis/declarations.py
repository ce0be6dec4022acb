"""Declarations in, relations out: names, attribute types, keys, lifetimes."""

from __future__ import annotations

from dataclasses import replace

from whorl.analysis.draft import Draft, Errors
from whorl.analysis.durations import resolve_duration, resolve_window
from whorl.analysis.program import Relation
from whorl.diagnostics.names import suggest
from whorl.diagnostics.wording import listed
from whorl.model.schema import Column, Window
from whorl.model.types import SPELLINGS, Type
from whorl.syntax import ast


def resolve_declarations(draft: Draft, errors: Errors) -> Draft:
    """Turn every declaration into a relation."""
    relations: dict[str, Relation] = {}
    for statement in draft.text.statements:
        group: tuple[ast.Declaration, ...] = ()
        if isinstance(statement, ast.Declaration):
            group = (statement,)
        elif isinstance(statement, ast.StreamGroup):
            group = statement.declarations
        for declaration in group:
            if declaration.name in relations:
                first = relations[declaration.name].span
                line = first.line if first else "an earlier line"
                errors.add("E201", declaration.name_span, name=declaration.name, line=line)
                continue
            relations[declaration.name] = _resolve(declaration, errors)
    return replace(draft, relations=relations)


def _resolve(declaration: ast.Declaration, errors: Errors) -> Relation:
    columns = tuple(_column(attribute, errors) for attribute in declaration.attributes)
    _check_attributes(declaration, errors)
    timestamped = bool(columns) and columns[0].type is Type.TIMESTAMP
    if declaration.kind == "stream" and not timestamped:
        _report_timestamp(declaration, columns, errors)
    # The printed form declares streams; one without a timestamp can only be a relation.
    stream = declaration.kind == "stream" or (declaration.kind == "printed" and timestamped)
    window, ttl = _lifetime(declaration, errors, stream=stream)
    return Relation(
        declaration.name,
        "stream" if stream else "relation",
        columns,
        declared=True,
        window=window,
        ttl=ttl,
        span=declaration.span,
    )


def _report_timestamp(declaration: ast.Declaration, columns: tuple[Column, ...], errors: Errors) -> None:
    """Report a stream without a timestamp, unless its type is already reported."""
    if not columns:
        errors.add("E324", declaration.name_span, name=declaration.name, found="no attribute")
    elif columns[0].type is not Type.UNKNOWN:
        errors.add("E324", declaration.attributes[0].span, name=declaration.name, found=f'"{columns[0]}"')


def _column(attribute: ast.Attribute, errors: Errors) -> Column:
    found = SPELLINGS.get(attribute.type.lower())
    if found is None:
        known = list(dict.fromkeys(str(known) for known in SPELLINGS.values()))
        hint = suggest(attribute.type, known) or f"Use {listed(known)}."
        errors.add("E202", attribute.type_span, name=attribute.type, hint=hint)
        found = Type.UNKNOWN
    return Column(attribute.name, found, attribute.key)


def _check_attributes(declaration: ast.Declaration, errors: Errors) -> None:
    seen: set[str] = set()
    for attribute in declaration.attributes:
        if attribute.name in seen:
            span = attribute.span.first(len(attribute.name)) if attribute.span else None
            errors.add("E203", span, name=attribute.name, relation=declaration.name)
        seen.add(attribute.name)


def _lifetime(declaration: ast.Declaration, errors: Errors, *, stream: bool) -> tuple[Window | None, int | None]:
    window = resolve_window(declaration.window, errors) if declaration.window else None
    ttl = resolve_duration(declaration.ttl, errors) if declaration.ttl else None
    if declaration.window and declaration.ttl:
        errors.add("E325", declaration.ttl.span, name=declaration.name)
    if declaration.window and window and not window.counted and not stream:
        errors.add("E323", declaration.window.span, name=declaration.name)
    return window, ttl
