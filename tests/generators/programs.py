"""Random programs that pass every check and end on any data that `changes.streams` makes.

A program is a few base relations over tiny domains, a few strata on top of them (`strata`), and perhaps queries. Values
stay in a small range wherever a recursion calculates, so that every fixpoint is finite and small. `Shape` says what a
program may use, and `GeneratedProgram.features` what it does use.
"""

from __future__ import annotations

from hypothesis import strategies as st

from tests.generators.builder import Builder, body_relations
from tests.generators.schema import PLAIN, GeneratedProgram, Shape
from tests.generators.strata import KINDS, stamped
from whorl.syntax import ast
from whorl.syntax.printer import print_program


@st.composite
def programs(draw: st.DrawFn, shape: Shape = PLAIN) -> GeneratedProgram:
    """Return valid programs of a shape."""
    b = Builder(draw, shape)
    base = b.base_relations()
    facts = b.facts(base)
    kinds = [kind for kind in KINDS if kind.__name__ in shape.kinds and (kind is not stamped or shape.windows)]
    for build in draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=shape.max_strata)):
        build(b)
    statements = (*b.declarations, *facts, *b.rules, *b.queries())
    used = {name for statement in statements for name in _relations(statement)}
    text = print_program(ast.Program(statements))
    return GeneratedProgram(text, tuple(r for r in base if r.name in used), frozenset(b.features))


def _relations(statement: ast.Statement) -> set[str]:
    if isinstance(statement, ast.Declaration):
        return {statement.name}
    if isinstance(statement, ast.Rule):
        heads = {head.relation for head in statement.heads}
        return heads | (body_relations(statement.body) if statement.body is not None else set())
    return {statement.atom.relation} if isinstance(statement, ast.Query) else set()
