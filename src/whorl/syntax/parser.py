"""Program text in, syntax tree out; or every syntax error, each at its place.

The whole text is parsed at once; only when that fails is it cut into statements (see `recovery`), so that one mistake
does not hide the next. Lists are read as `[head | tail]`; a program that writes two elements after the bar
anywhere, `[prefix | a, b]`, uses that notation throughout, and is read so.
"""

from __future__ import annotations

from lark.exceptions import UnexpectedInput

from whorl.diagnostics.errors import ProgramErrors
from whorl.diagnostics.source import Source
from whorl.syntax import ast
from whorl.syntax.builder import Builder
from whorl.syntax.comments import blank_comments
from whorl.syntax.depth import check_depth, check_nesting
from whorl.syntax.grammar import parse_tree
from whorl.syntax.recovery import find_errors


def parse_program(source: Source) -> ast.Program:
    """Parse a Datalog program.

    >>> parse_program(Source("demo", "p(X) :- q(X, 1).")).statements[0].heads[0].relation
    'p'
    """
    text = blank_comments(source.text)
    check_nesting(source, text)
    try:
        tree = parse_tree(text)
    except UnexpectedInput:
        raise ProgramErrors(find_errors(source, text)) from None
    check_depth(source, tree)
    builder = Builder(source, prefix_lists=False)
    program = builder.transform(tree)
    if builder.saw_prefix_list:
        builder = Builder(source, prefix_lists=True)
        program = builder.transform(tree)
    if builder.errors:
        raise ProgramErrors(builder.errors)
    assert isinstance(program, ast.Program)
    return program
