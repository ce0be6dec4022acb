"""Statements in, flat rules, facts and queries out.

Alternatives are multiplied out, one rule each; several heads are several rules; `a < b < c` is two comparisons;
`larger`, `largest`, `smallest`, `encd`, `decd` and functions in the place of an atom become equations; three dots
become as many underscores as the relation asks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, product

from whorl.analysis.draft import Draft, Errors
from whorl.analysis.durations import resolve_window
from whorl.analysis.expressions import evaluate, is_pattern
from whorl.analysis.program import Absent, Compare, Fact, Literal, Member, Query, Rule, parts, variables
from whorl.diagnostics.errors import UserError
from whorl.diagnostics.source import Span
from whorl.model.builtins import LARGEST, PREDICATES, SMALLEST
from whorl.model.types import Type
from whorl.model.values import Value
from whorl.syntax import ast

MAX_ALTERNATIVES = 256
_PREDICATE_ARGUMENTS = {"member": 2, "encd": 3, "decd": 3, "larger": 3, "smaller": 3, "largest": 2, "smallest": 2}
_NEGATED = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def normalize_rules(draft: Draft, errors: Errors) -> Draft:
    """Flatten every rule, and tell facts of base relations from rules."""
    statements = [statement for statement in draft.text.statements if isinstance(statement, ast.Rule)]
    derived = {head.relation for rule in statements if rule.body is not None for head in rule.heads}
    heads = {head.relation for rule in statements for head in rule.heads}
    flatten = _Flattener(draft, errors, heads | set(draft.relations))
    rules: list[Rule] = []
    facts: list[Fact] = []
    every = ((statement, head) for statement in statements for head in statement.heads)
    for origin, (statement, head) in enumerate(every):
        if statement.body is not None:
            rules.extend(flatten.rule(head, statement, origin))
        elif _check_fact(head, errors):
            if head.relation in derived:
                rules.append(Rule(head, (), origin, statement.span))
            else:
                facts.extend(_fact(head, draft, errors))
    return replace(draft, rules=tuple(rules), facts=tuple(facts))


def resolve_queries(draft: Draft, errors: Errors) -> Draft:
    """Name every output: the queries, or else every derived relation."""
    queries: list[Query] = []
    taken: set[str] = set()
    for statement in draft.text.statements:
        if not isinstance(statement, ast.Query):
            continue
        atom = statement.atom
        _check_query(atom, errors)
        window = resolve_window(statement.window, errors) if statement.window else None
        name = _free_name(atom.relation, taken)
        window_span = statement.window.span if statement.window else None
        queries.append(Query(name, atom.relation, atom.args, window, atom.span, window_span))
    if not queries:
        for rule in draft.rules:
            if rule.head.relation not in taken:
                taken.add(rule.head.relation)
                args = tuple(ast.Variable(f"{index}") for index in range(len(rule.head.args)))
                queries.append(Query(rule.head.relation, rule.head.relation, args, None, None))
    return replace(draft, queries=tuple(queries))


def _free_name(name: str, taken: set[str]) -> str:
    candidate = name
    number = 2
    while candidate in taken:
        candidate = f"{name}_{number}"
        number += 1
    taken.add(candidate)
    return candidate


def _check_query(atom: ast.Atom, errors: Errors) -> None:
    """The arguments of a query choose rows and columns; three dots may end them."""
    for position, arg in enumerate(atom.args):
        if isinstance(arg, ast.Operation) or (not isinstance(arg, ast.Variable) and any(variables(arg))):
            errors.add("E214", arg.span)
        elif isinstance(arg, ast.Rest) and position < len(atom.args) - 1:
            errors.add("E111", arg.span)


def _check_fact(head: ast.Head, errors: Errors) -> bool:
    """Tell whether a head without a body is made of constants; report the first argument that is none."""
    for arg in head.args:
        if isinstance(arg, ast.Aggregate):
            errors.add("E215", arg.span)
            return False
        loose = next(chain(variables(arg), _anonymous(arg)), None)
        if isinstance(loose, ast.Variable):
            errors.add("E212", loose.span, relation=head.relation, name=loose.name)
        elif loose is not None:
            errors.add("E111" if isinstance(loose, ast.Rest) else "E210", loose.span)
        if loose is not None:
            return False
    return True


def _fact(head: ast.Head, draft: Draft, errors: Errors) -> Iterator[Fact]:
    row: list[Value] = []
    for arg in head.args:
        assert not isinstance(arg, ast.Aggregate), "a fact has been checked"
        try:
            value = evaluate(arg, {}, draft.functions)
        except UserError as error:  # a function that fails
            errors.found.append(error)
            return
        if value is None:
            errors.add("E213", arg.span)
            return
        row.append(value)
    yield Fact(head.relation, tuple(row), head.span, tuple(arg.span for arg in head.args))


def _anonymous(expr: ast.Expr | ast.Aggregate) -> Iterator[ast.Anonymous | ast.Rest]:
    if isinstance(expr, ast.Anonymous | ast.Rest):
        yield expr
    for part in parts(expr):
        yield from _anonymous(part)


class _Flattener:
    """Turns one rule of the text into flat rules."""

    def __init__(self, draft: Draft, errors: Errors, relations: set[str]) -> None:
        self._functions = draft.functions
        self._errors = errors
        self._relations = relations

    def rule(self, head: ast.Head, statement: ast.Rule, origin: int) -> Iterator[Rule]:
        assert statement.body is not None, "facts are no rules"
        for body in self._alternatives(statement.body, statement.span):
            literals = tuple(literal for formula in body for literal in self._literals(formula))
            yield Rule(head, literals, origin, statement.span)

    def _alternatives(self, formula: ast.Formula, span: Span | None) -> list[tuple[ast.Formula, ...]]:
        if isinstance(formula, ast.Alternatives):
            return [body for part in formula.parts for body in self._alternatives(part, span)]
        if not isinstance(formula, ast.Conjunction):
            return [(formula,)]
        choices = [self._alternatives(part, span) for part in formula.parts]
        count = 1
        for choice in choices:
            count *= len(choice)
        if count > MAX_ALTERNATIVES:
            self._errors.add("E118", span, count=count, limit=MAX_ALTERNATIVES)
            return [()]
        return [tuple(chain.from_iterable(pick)) for pick in product(*choices)]

    def _literals(self, formula: ast.Formula) -> Iterator[Literal]:
        span, negated = formula.span, False
        while isinstance(formula, ast.Negation):
            formula, negated = formula.formula, not negated
        if isinstance(formula, ast.Comparison):
            yield from self._comparison(formula, span, negated=negated)
            return
        assert isinstance(formula, ast.Atom), "the parser allows not before an atom or a comparison only"
        yield from self._atom(formula, span, negated=negated)

    def _comparison(self, formula: ast.Comparison, span: Span | None, *, negated: bool) -> Iterator[Literal]:
        if negated and len(formula.operators) > 1:
            self._errors.add("E107", span)
            return
        pairs = zip(formula.operators, formula.operands, formula.operands[1:], strict=False)
        for operator, left, right in pairs:
            arrow = self._arrow(operator, left, right)
            if arrow is not None:
                hint = "End the rule before this one with a full stop."
                self._errors.add("E101", arrow, found='"<-"', expected='",", ";" or "."', hint=hint)
                return
            for side in (left, right):
                self._check_value(side)
            yield Compare(_NEGATED[operator] if negated else operator, left, right, span)

    def _arrow(self, operator: str, left: ast.Expr, right: ast.Expr) -> Span | None:
        """Return the place of an arrow inside a body, which was read as "less than minus" between two terms."""
        negated = right.args[0] if isinstance(right, ast.Operation) and len(right.args) == 1 else None
        if operator != "<" or right.span is None or not all(self._is_term(side) for side in (left, negated)):
            return None
        arrow = Span(right.span.source, right.span.start - 1, right.span.start + 1)
        return arrow if arrow.text == "<-" else None

    def _is_term(self, expr: ast.Expr | None) -> bool:
        return isinstance(expr, ast.Call) and expr.name not in self._functions

    def _atom(self, atom: ast.Atom, span: Span | None, *, negated: bool) -> Iterator[Literal]:
        if atom.relation in self._relations or not self._computes(atom):
            for position, arg in enumerate(atom.args):
                if not (isinstance(arg, ast.Rest) and position == len(atom.args) - 1):
                    self._check_arguments(arg)
            yield Absent(atom, span) if negated else atom
            return
        if not self._fits(atom):
            return
        if atom.relation == "member":
            sides: tuple[ast.Expr, ...] = atom.args
            yield Member(atom.args[0], atom.args[1], negated, span)
        else:
            sides = left, right = self._equation(atom)
            yield Compare("!=" if negated else "=", left, right, span)
        for side in sides:
            self._check_arguments(side)

    def _computes(self, atom: ast.Atom) -> bool:
        """Tell whether an atom is a built-in or a function rather than a relation."""
        return atom.relation in PREDICATES or atom.relation in self._functions

    def _fits(self, atom: ast.Atom) -> bool:
        """Tell whether a built-in or a function has as many arguments as it takes; report it if not."""
        count = len(atom.args)
        if atom.relation in PREDICATES:
            least = _PREDICATE_ARGUMENTS[atom.relation]
            variadic = atom.relation in ("largest", "smallest")
            fits, hint = count == least or (variadic and count > least), ""
        else:
            function = self._functions[atom.relation]
            result = 0 if function.result is Type.BOOLEAN else 1
            least, variadic = len(function.parameters) + result, function.variadic
            fits, hint = (
                function.accepts(count - result),
                "As a condition it takes its result as the last argument." if result else "",
            )
        if not fits:
            expected = f"at least {least}" if variadic else least
            self._errors.add("E206", atom.span, name=atom.relation, found=count, expected=expected, hint=hint)
        return fits

    def _equation(self, atom: ast.Atom) -> tuple[ast.Expr, ast.Expr]:
        args, span = atom.args, atom.span
        if atom.relation in LARGEST | SMALLEST:
            name = "max" if atom.relation in LARGEST else "min"
            inputs = args[1:] if len(args) > 2 else (args[1], args[1])
            return args[0], ast.Call(name, inputs, span)
        if atom.relation == "encd":
            return args[2], ast.ListExpr(args[:2], span=span)
        if atom.relation == "decd":
            return ast.ListExpr(args[1:], span=span), args[0]
        function = self._functions[atom.relation]
        if function.result is Type.BOOLEAN:
            return ast.Call(atom.relation, args, span), ast.Constant(True, span)  # noqa: FBT003
        return args[-1], ast.Call(atom.relation, args[:-1], span)

    def _check_arguments(self, expr: ast.Expr) -> None:
        """An argument of a relation may be anonymous, also inside a pattern, but not inside a calculation."""
        if is_pattern(expr, self._functions):
            for part in parts(expr):
                self._check_arguments(part)
        elif isinstance(expr, ast.Rest):
            self._errors.add("E111", expr.span)
        elif not isinstance(expr, ast.Anonymous):
            self._check_calculation(expr)

    def _check_value(self, expr: ast.Expr) -> None:
        """A side of a comparison needs a value; a list or a term on it is a pattern."""
        if isinstance(expr, ast.Anonymous):
            self._errors.add("E211", expr.span)
        else:
            self._check_arguments(expr)

    def _check_calculation(self, expr: ast.Expr) -> None:
        for loose in _anonymous(expr):
            self._errors.add("E111" if isinstance(loose, ast.Rest) else "E211", loose.span)
