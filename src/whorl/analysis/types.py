"""Infer the type of every column from declarations, constants, functions and aggregates.

Types flow from bodies to heads until nothing changes; a column that receives integers and floats is a float column.
Then every rule is looked at once more, and what does not fit is reported. Columns that nothing fixes stay unknown, and
take the type of their data. Those that receive parts of terms or lists are known beforehand (`mixed`): they hold
values of every type.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import replace

from whorl.analysis.draft import Draft, Errors
from whorl.analysis.expressions import is_pattern
from whorl.analysis.mixed import inner_variables, mixed_columns
from whorl.analysis.program import (
    MONOTONE_SPELLINGS,
    Absent,
    Compare,
    Literal,
    Member,
    Relation,
    Rule,
    parts,
)
from whorl.diagnostics.source import Span
from whorl.model.types import Type, type_of, unify, widen
from whorl.syntax import ast

Columns = dict[str, list[Type]]

UNFIXED = (Type.UNKNOWN, Type.ANY)


def infer_types(draft: Draft, errors: Errors) -> Draft:
    """Give every column its type, and check every rule against them."""
    columns = {name: [c.type for c in relation.columns] for name, relation in draft.relations.items()}
    _type_facts(draft, columns, errors)
    for relation, position in mixed_columns(draft):
        columns[relation][position] = Type.ANY
    users: dict[str, list[Rule]] = defaultdict(list)
    for rule in draft.rules:
        for atom, _positive in rule.atoms():
            users[atom.relation].append(rule)
    queue = deque(draft.rules)
    queued = {id(rule) for rule in draft.rules}
    while queue:
        rule = queue.popleft()
        queued.discard(id(rule))
        for relation in _infer(rule, draft, columns, Errors()):
            for user in users[relation]:
                if id(user) not in queued:
                    queued.add(id(user))
                    queue.append(user)
    for rule in draft.rules:
        _infer(rule, draft, columns, errors)
    _check_queries(draft, columns, errors)
    relations = {name: _retype(relation, columns[name]) for name, relation in draft.relations.items()}
    return replace(draft, relations=relations)


def _retype(relation: Relation, types: list[Type]) -> Relation:
    columns = tuple(replace(c, type=t.settled) for c, t in zip(relation.columns, types, strict=True))
    return replace(relation, columns=columns)


def _type_facts(draft: Draft, columns: Columns, errors: Errors) -> None:
    for fact in draft.facts:
        relation = draft.relations[fact.relation]
        types = columns[fact.relation]
        row = fact.row[1:] if relation.lifted else fact.row
        spans = fact.value_spans[len(fact.row) - len(row) :]
        if relation.lifted and type_of(fact.row[0]) is not Type.INTEGER:
            facts = {"expected": Type.TIMESTAMP, "found": type_of(fact.row[0])}
            errors.add("E221", fact.value_spans[0], name=fact.relation, **facts)
        for position, (value, span) in enumerate(zip(row, spans, strict=True)):
            found = type_of(value)
            fitting = widen(types[position], found)
            if fitting is None or (relation.declared and fitting is not types[position]):
                errors.add("E221", span, name=fact.relation, expected=types[position], found=found)
            elif not relation.declared:
                types[position] = fitting


def _infer(rule: Rule, draft: Draft, columns: Columns, errors: Errors) -> set[str]:
    """Type one rule; return the relations whose columns it changed."""
    typing = _Typing(draft, columns, errors)
    body = typing.variables(rule.body)
    changed: set[str] = set()
    for position, arg in enumerate(rule.head.args):
        found = typing.aggregate(arg, body) if isinstance(arg, ast.Aggregate) else typing.expr(arg, body)
        known = columns[rule.head.relation][position]
        wider = widen(known, found)
        if wider is None:
            errors.add("E226", arg.span, name=rule.head.relation, position=position + 1, first=known, second=found)
        elif wider is not known:
            columns[rule.head.relation][position] = wider
            changed.add(rule.head.relation)
    changed |= typing.teach_bases(rule, body)
    return changed


def _check_queries(draft: Draft, columns: Columns, errors: Errors) -> None:
    for query in draft.queries:
        for position, arg in enumerate(query.args):
            if isinstance(arg, ast.Constant):
                expected = columns[query.relation][position]
                found = type_of(arg.value)
                if widen(expected, found) is not expected and expected is not Type.UNKNOWN:
                    errors.add("E221", arg.span, name=query.relation, expected=expected, found=found)


class _Typing:
    """Types the expressions of one rule."""

    def __init__(self, draft: Draft, columns: Mapping[str, list[Type]], errors: Errors) -> None:
        self._draft = draft
        self._columns = columns
        self._errors = errors
        self._quiet = False
        self._inner: set[str] = set()  # variables inside terms and lists
        self._placed: set[str] = set()  # variables that are a column of some atom

    def _error(self, code: str, span: Span | None, **facts: object) -> None:
        if not self._quiet:
            self._errors.add(code, span, **facts)

    def variables(self, body: tuple[Literal, ...]) -> dict[str, Type]:
        """Return the type of each variable of a body."""
        env: dict[str, Type] = {}
        self._inner = inner_variables(body, self._draft.functions)
        self._placed = {
            arg.name
            for literal in body
            if isinstance(literal, ast.Atom)
            for arg in literal.args
            if isinstance(arg, ast.Variable)
        }
        self._quiet = True
        for _pass in range(len(body) + 1):
            before = dict(env)
            for literal in body:
                self._literal(literal, env)
            if env == before:
                break
        self._quiet = False
        for literal in body:
            self._literal(literal, env)
        return env

    def _literal(self, literal: Literal, env: dict[str, Type]) -> None:
        if isinstance(literal, ast.Atom | Absent):
            # That a row is absent says nothing about what its variables hold: a negated atom only checks.
            atom, known = (literal.atom, dict(env)) if isinstance(literal, Absent) else (literal, env)
            for arg, column in zip(atom.args, self._columns[atom.relation], strict=True):
                self._argument(arg, column, atom, known)
        elif isinstance(literal, Compare):
            self._compare(literal, env)
        elif isinstance(literal, Member):
            found = self.expr(literal.items, env)
            if unify(found, Type.LIST) is None:
                self._error("E224", literal.items.span, name="member", expected=Type.LIST, found=found)
            self._pattern(literal.item, Type.ANY, env)

    def _argument(self, arg: ast.Expr, column: Type, atom: ast.Atom, env: dict[str, Type]) -> None:
        if isinstance(arg, ast.Variable):
            self._assign(arg, column, env)
            return
        if isinstance(arg, ast.Anonymous):
            return
        if is_pattern(arg, self._draft.functions):
            self._pattern(arg, Type.UNKNOWN, env)
        found = self.expr(arg, env)
        if unify(column, found) is None and not (column is Type.FLOAT and found.numeric):
            self._error("E221", arg.span, name=atom.relation, expected=column, found=found)

    def _assign(self, variable: ast.Variable, found: Type, env: dict[str, Type]) -> None:
        known = env.get(variable.name, Type.UNKNOWN)
        both = unify(known, found)
        if both is None:
            self._error("E220", variable.span, name=variable.name, first=known, second=found)
        else:
            env[variable.name] = both

    def _pattern(self, pattern: ast.Expr, column: Type, env: dict[str, Type]) -> None:
        if isinstance(pattern, ast.Variable):
            self._assign(pattern, column, env)
            return
        if isinstance(pattern, ast.Anonymous):
            return
        if is_pattern(pattern, self._draft.functions):
            own = Type.LIST if isinstance(pattern, ast.ListExpr) else Type.TERM
            if unify(column, own) is None:
                self._error("E223", pattern.span, expected=column, found=own)
            ends = (pattern.prefix, pattern.tail) if isinstance(pattern, ast.ListExpr) else ()
            for part in parts(pattern):
                self._pattern(part, Type.LIST if any(part is end for end in ends) else Type.ANY, env)
            return
        found = self.expr(pattern, env)
        if unify(column, found) is None and not (column.numeric and found.numeric):
            self._error("E223", pattern.span, expected=column, found=found)

    def _compare(self, literal: Compare, env: dict[str, Type]) -> None:
        sides = (literal.left, literal.right)
        if literal.operator == "=":
            for own, other in (sides, sides[::-1]):
                if isinstance(own, ast.Variable) and self._takes(own.name, env):
                    env[own.name] = self.expr(other, env)
                elif is_pattern(own, self._draft.functions):
                    self._pattern(own, Type.UNKNOWN, env)
        left, right = (self.expr(side, env) for side in sides)
        if unify(left, right) is None and not (left.numeric and right.numeric):
            self._error("E222", literal.span, left=left, right=right)

    def _takes(self, name: str, env: Mapping[str, Type]) -> bool:
        """Whether a variable takes its type from an equation: not if it comes from inside a term or a list."""
        known = env.get(name, Type.UNKNOWN)
        return name not in self._inner and (known is Type.UNKNOWN or (known is Type.ANY and name not in self._placed))

    def expr(self, expr: ast.Expr, env: Mapping[str, Type]) -> Type:
        """Return the type of an expression, and report what its parts do not fit."""
        if isinstance(expr, ast.Constant):
            return type_of(expr.value)
        if isinstance(expr, ast.Variable):
            return env.get(expr.name, Type.UNKNOWN)
        if isinstance(expr, ast.ListExpr):
            for part in parts(expr):
                self.expr(part, env)
            return Type.LIST
        if isinstance(expr, ast.Operation):
            return self._operation(expr, env)
        if isinstance(expr, ast.Call):
            return self._call(expr, env)
        return Type.UNKNOWN

    def _operation(self, expr: ast.Operation, env: Mapping[str, Type]) -> Type:
        found = [self.expr(arg, env) for arg in expr.args]
        for arg, own in zip(expr.args, found, strict=True):
            if own not in UNFIXED and not own.numeric:
                hint = "Use cat to join strings." if own is Type.STRING and expr.operator == "+" else ""
                self._error("E225", arg.span, operator=expr.operator, found=own, hint=hint)
                break
        if Type.FLOAT in found:
            return Type.FLOAT
        for unfixed in UNFIXED:
            if unfixed in found:
                return unfixed
        if Type.TIMESTAMP in found and expr.operator in ("+", "-"):
            return Type.INTEGER if found.count(Type.TIMESTAMP) > 1 else Type.TIMESTAMP
        return Type.INTEGER

    def _call(self, expr: ast.Call, env: Mapping[str, Type]) -> Type:
        found = [self.expr(arg, env) for arg in expr.args]
        function = self._draft.functions.get(expr.name)
        if function is None:
            return Type.TERM
        for position, (arg, own) in enumerate(zip(expr.args, found, strict=True)):
            expected = function.parameter(position)
            if unify(expected, own) is None and not (expected is Type.FLOAT and own.numeric):
                self._error("E224", arg.span, name=expr.name, expected=expected, found=own)
        return function.result_type(found)

    def aggregate(self, aggregate: ast.Aggregate, env: Mapping[str, Type]) -> Type:
        """Return the type of an aggregated column."""
        found = [self.expr(arg, env) for arg in aggregate.args]
        function = MONOTONE_SPELLINGS.get(aggregate.function, aggregate.function)
        value = found[-1]
        counted = function == "count" and len(found) == 1
        if counted:
            return Type.INTEGER
        if function in ("sum", "avg", "count") and value not in UNFIXED and not value.numeric:
            self._error("E227", aggregate.span, name=aggregate.function, found=value)
        if function == "avg":
            return Type.FLOAT
        return Type.INTEGER if value is Type.TIMESTAMP and function == "sum" else value

    def teach_bases(self, rule: Rule, env: Mapping[str, Type]) -> set[str]:
        """Give columns of undeclared base relations the types that their variables have elsewhere."""
        changed: set[str] = set()
        for atom, _positive in rule.atoms():
            relation = self._draft.relations[atom.relation]
            if not relation.base or relation.declared:
                continue
            types = self._columns[atom.relation]
            for position, arg in enumerate(atom.args):
                if isinstance(arg, ast.Variable) and types[position] is Type.UNKNOWN:
                    known = env.get(arg.name, Type.UNKNOWN)
                    if known not in UNFIXED:
                        types[position] = known
                        changed.add(atom.relation)
        return changed
