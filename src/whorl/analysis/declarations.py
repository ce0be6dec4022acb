"""Declarations in, relations out: names, attribute types, keys, lifetimes."""

from __future__ import annotations

from dataclasses import replace

from whorl.analysis.draft import Draft, Errors
from whorl.analysis.durations import resolve_duration, resolve_window
from whorl.analysis.program import Relation
from whorl.diagnostics.names import suggest
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
                errors.add(
                    "E201", declaration.span, name=declaration.name, line=first.line if first else "an earlier line"
                )
                continue
            relations[declaration.name] = _resolve(declaration, errors)
    return replace(draft, relations=relations)


def _resolve(declaration: ast.Declaration, errors: Errors) -> Relation:
    columns = tuple(_column(attribute, errors) for attribute in declaration.attributes)
    _check_attributes(declaration, errors)
    timestamped = bool(columns) and columns[0].type is Type.TIMESTAMP
    if declaration.kind == "stream" and not timestamped:
        span = declaration.attributes[0].span if declaration.attributes else declaration.span
        found = str(columns[0]) if columns else "no attribute"
        errors.add("E324", span, name=declaration.name, found=found)
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


def _column(attribute: ast.Attribute, errors: Errors) -> Column:
    found = SPELLINGS.get(attribute.type.lower())
    if found is None:
        known = sorted({str(known) for known in SPELLINGS.values()})
        hint = suggest(attribute.type, known) or "Use one of " + ", ".join(known) + "."
        errors.add("E202", attribute.span, name=attribute.type, hint=hint)
        found = Type.UNKNOWN
    return Column(attribute.name, found, attribute.key)


def _check_attributes(declaration: ast.Declaration, errors: Errors) -> None:
    seen: set[str] = set()
    for attribute in declaration.attributes:
        if attribute.name in seen:
            errors.add("E203", attribute.span, name=attribute.name, relation=declaration.name)
        seen.add(attribute.name)


def _lifetime(declaration: ast.Declaration, errors: Errors, *, stream: bool) -> tuple[Window | None, int | None]:
    window = resolve_window(declaration.window, errors) if declaration.window else None
    ttl = resolve_duration(declaration.ttl, errors) if declaration.ttl else None
    if window and ttl:
        errors.add("E325", declaration.span, name=declaration.name)
    if declaration.window and window and not window.counted and not stream:
        errors.add("E323", declaration.window.span, name=declaration.name)
    return window, ttl
