"""Every name means something, with the right number of arguments.

A relation is declared, or defined by rules, or (in a program without declarations) simply used: then it is a base
relation whose types the data will tell. Three dots are filled up here, where the number of attributes is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from whorl.analysis.draft import Draft, Errors
from whorl.analysis.program import AGGREGATES, Absent, Literal, Relation, Rule, expressions, parts, rule_variables
from whorl.diagnostics.names import suggest
from whorl.diagnostics.source import Span
from whorl.diagnostics.wording import listed
from whorl.model.builtins import PREDICATES
from whorl.model.schema import Column
from whorl.model.types import Type
from whorl.syntax import ast


def resolve_names(draft: Draft, errors: Errors) -> Draft:
    """Check relations, functions and aggregates, and add the relations that no declaration names."""
    arities = _arities(draft, errors)
    draft = _expand_dots(draft, arities, errors)
    heads = {rule.head.relation: rule.head for rule in reversed(draft.rules)}
    _check_relations(draft, errors)
    for rule in draft.rules:
        _check_head(rule, errors)
        _check_calls(rule, draft, errors)
    relations = dict(draft.relations)
    for name, (arity, span) in arities.items():
        if name not in relations:
            kind = "derived" if name in heads else "relation"
            relations[name] = Relation(name, kind, _columns(arity, heads.get(name)), span=span)
    notes = tuple(_notes(draft, relations))
    return replace(draft, relations=relations, notes=draft.notes + notes)


def _columns(arity: int, head: ast.Head | None) -> tuple[Column, ...]:
    """Name the columns of a derived relation after the variables of its first head, others by their number."""
    names: list[str] = []
    for index in range(arity):
        arg = head.args[index] if head is not None and index < len(head.args) else None
        value = arg.args[-1] if isinstance(arg, ast.Aggregate) else arg
        name = value.name if isinstance(value, ast.Variable) else ""
        names.append(name if name and name not in names else f"c{index + 1}")
    return tuple(Column(name, Type.UNKNOWN) for name in names)


def _uses(draft: Draft) -> Iterator[tuple[str, tuple[object, ...], Span | None]]:
    for fact in draft.facts:
        yield fact.relation, fact.row, fact.span
    for rule in draft.rules:
        yield rule.head.relation, rule.head.args, rule.head.span
    for rule in draft.rules:
        for atom, _positive in rule.atoms():
            yield atom.relation, atom.args, atom.span
    for query in draft.queries:
        if query.span is not None:
            yield query.relation, query.args, query.span


def _arities(draft: Draft, errors: Errors) -> dict[str, tuple[int, Span | None]]:
    """Return the number of attributes of every relation; report uses that disagree."""
    known = {name: (len(relation.columns), relation.span) for name, relation in draft.relations.items()}
    for name, args, span in _uses(draft):
        if args and isinstance(args[-1], ast.Rest):
            continue
        arity, first = known.setdefault(name, (len(args), span))
        if arity != len(args):
            errors.add("E204", span, name=name, found=len(args), expected=arity, line=first.line if first else 0)
    return known


def _expand_dots(draft: Draft, arities: dict[str, tuple[int, Span | None]], errors: Errors) -> Draft:
    def expand(atom: ast.Atom) -> ast.Atom:
        if not atom.args or not isinstance(atom.args[-1], ast.Rest):
            return atom
        dots = atom.args[-1]
        given = len(atom.args) - 1
        if atom.relation not in arities:
            errors.add("E216", dots.span, name=atom.relation)
            return replace(atom, args=atom.args[:-1])
        arity, first = arities[atom.relation]
        if given > arity:
            errors.add(
                "E204", atom.span, name=atom.relation, found=given, expected=arity, line=first.line if first else 0
            )
        fill = (ast.Anonymous(dots.span),) * max(arity - given, 0)
        return replace(atom, args=atom.args[:-1] + fill)

    def literal(part: Literal) -> Literal:
        if isinstance(part, ast.Atom):
            return expand(part)
        return replace(part, atom=expand(part.atom)) if isinstance(part, Absent) else part

    rules = tuple(replace(rule, body=tuple(literal(part) for part in rule.body)) for rule in draft.rules)
    queries = tuple(
        replace(query, args=expand(ast.Atom(query.relation, query.args, query.span)).args) for query in draft.queries
    )
    return replace(draft, rules=rules, queries=queries)


def _check_relations(draft: Draft, errors: Errors) -> None:
    rules = [statement for statement in draft.text.statements if isinstance(statement, ast.Rule)]
    known = set(draft.relations) | {head.relation for rule in rules for head in rule.heads}
    reported: set[str] = set()
    for rule in draft.rules:
        if rule.head.relation in draft.relations:
            declared = draft.relations[rule.head.relation].span
            line = declared.line if declared else "an earlier line"
            errors.add("E209", rule.head.span, name=rule.head.relation, line=line)
        _check_atoms(rule, known, reported, draft, errors)
    used = {atom.relation for rule in draft.rules for atom, _ in rule.atoms()}
    expected = known | (reported if draft.relations else used)
    for query in draft.queries:
        if query.relation not in expected:
            hint = suggest(query.relation, known | used) or "Query a relation that the program defines."
            errors.add("E205", _name_span(query.span, query.relation), name=query.relation, hint=hint)


def _check_atoms(rule: Rule, known: set[str], reported: set[str], draft: Draft, errors: Errors) -> None:
    """Report a variable in the place of an atom and, in a program with declarations, what nobody declares.

    Of each relation the first use is enough: ``reported`` collects them.
    """
    names = {variable.name for variable in rule_variables(rule)}
    for atom, _positive in rule.atoms():
        if atom.relation in known or atom.relation in reported:
            continue
        if not atom.args and atom.relation in names:
            errors.add("E105", atom.span)
        elif draft.relations:
            hint = suggest(atom.relation, known | PREDICATES | set(draft.functions))
            hint = hint or "Declare it, or define it by a rule."
            errors.add("E205", _name_span(atom.span, atom.relation), name=atom.relation, hint=hint)
            reported.add(atom.relation)


def _name_span(span: Span | None, name: str) -> Span | None:
    """Return the place of the name with which an atom starts."""
    return span.first(len(name)) if span else None


def _check_head(rule: Rule, errors: Errors) -> None:
    for arg in rule.head.args:
        if isinstance(arg, ast.Aggregate):
            _check_aggregate(arg, errors)
        for part in _walk(arg):
            if isinstance(part, ast.Anonymous):
                errors.add("E210", part.span)
            elif isinstance(part, ast.Rest):
                errors.add("E111", part.span)


def _check_aggregate(aggregate: ast.Aggregate, errors: Errors) -> None:
    if aggregate.function not in AGGREGATES:
        hint = suggest(aggregate.function, AGGREGATES) or f"Use {listed(AGGREGATES)}."
        span = aggregate.span.first(len(aggregate.function)) if aggregate.span else None
        errors.add("E207", span, name=aggregate.function, hint=hint)
        return
    if aggregate.distinct and aggregate.function != "count":
        errors.add("E208", aggregate.span, name=aggregate.function)
    keyed = aggregate.function in ("mcount", "msum")
    if len(aggregate.args) > (2 if keyed else 1):
        expected = "a value or a pair (Key, N)" if keyed else "one value"
        errors.add("E217", aggregate.span, name=aggregate.function, expected=expected, found=len(aggregate.args))


def _check_calls(rule: Rule, draft: Draft, errors: Errors) -> None:
    roots = list(rule.head.args) + [expr for literal in rule.body for expr in expressions(literal)]
    for root in roots:
        for part in _walk(root):
            if not isinstance(part, ast.Call) or part.name not in draft.functions:
                continue
            function = draft.functions[part.name]
            if not function.accepts(len(part.args)):
                least = len(function.parameters)
                facts = {"expected": f"at least {least}" if function.variadic else least, "found": len(part.args)}
                hint = f'Write "{part.name}<X>" to aggregate.' if part.name in AGGREGATES else ""
                errors.add("E206", part.span, name=part.name, hint=hint, **facts)


def _walk(expr: ast.Expr | ast.Aggregate) -> Iterator[ast.Expr | ast.Aggregate]:
    yield expr
    for part in parts(expr):
        yield from _walk(part)


def _notes(draft: Draft, relations: dict[str, Relation]) -> Iterator[str]:
    """Yield what is allowed but looks like a slip."""
    defined = {name for name, relation in relations.items() if not relation.base}
    defined |= {fact.relation for fact in draft.facts}
    for name, relation in relations.items():
        if relation.base and not relation.declared and name not in defined:
            hint = suggest(name, defined)
            if hint:
                line = relation.span.line if relation.span else 0
                yield f'line {line}: "{name}" is taken for an input relation. {hint}'
    terms = {part.name: part for rule in reversed(draft.rules) for part in _terms(rule, draft)}
    for name, term in sorted(terms.items(), key=lambda item: item[1].span.start if item[1].span else 0):
        hint = f'Write "{name}<X>" to aggregate.' if name in AGGREGATES else suggest(name, draft.functions)
        if hint:
            line = term.span.line if term.span else 0
            yield f'line {line}: "{name}" is taken for a term, not a function. {hint}'


def _terms(rule: Rule, draft: Draft) -> Iterator[ast.Call]:
    """Yield the calls of a rule that are terms, the last first."""
    roots = [*rule.head.args, *(expr for literal in rule.body for expr in expressions(literal))]
    for root in reversed(roots):
        for part in _walk(root):
            if isinstance(part, ast.Call) and part.name not in draft.functions:
                yield part
