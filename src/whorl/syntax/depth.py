"""How deep a program may be nested: the later stages walk it by recursion, and must not run out of stack."""

from __future__ import annotations

from lark import Token, Tree

from whorl.diagnostics.errors import ProgramErrors, UserError
from whorl.diagnostics.source import Source, Span
from whorl.syntax.brackets import find_brackets

MAX_NESTING = 100  # brackets inside each other
MAX_DEPTH = 250  # levels of the parse tree: operators and negations count too
_HINT = 'Give parts a name of their own, by "X = ..." or by further relations.'


def check_nesting(source: Source, text: str) -> None:
    """Refuse a text with too many brackets inside each other."""
    depth = 0
    for offset in find_brackets(text):
        depth += 1 if text[offset] in "([{" else -1
        if depth > MAX_NESTING:
            raise ProgramErrors([UserError("E113", Span(source, offset, offset + 1), limit=MAX_NESTING, hint=_HINT)])


def check_depth(source: Source, tree: Tree[Token]) -> None:
    """Refuse a tree with too many levels."""
    level: list[Tree[Token]] = [tree]
    depth = 0
    while level and depth < MAX_DEPTH:
        level = [child for node in level for child in node.children if isinstance(child, Tree)]
        depth += 1
    if level:
        span = Span(source, level[0].meta.start_pos, level[0].meta.end_pos)
        raise ProgramErrors([UserError("E113", span, limit=MAX_DEPTH, hint=_HINT)])
