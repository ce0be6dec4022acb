"""Printing a syntax tree and parsing the text gives the tree again."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from tests.generators import syntax_trees
from tests.golden_cases import Case, cases
from whorl.cli.files import read_source
from whorl.diagnostics.source import Source
from whorl.syntax import ast
from whorl.syntax.parser import parse_program
from whorl.syntax.printer import print_program


@settings(max_examples=200)
@given(syntax_trees())
def test_parsing_what_was_printed_gives_the_tree(tree: ast.Program) -> None:
    text = print_program(tree)
    assert parse_program(Source("printed", text)) == tree, text


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_printing_is_a_fixpoint_on_the_golden_programs(case: Case) -> None:
    tree = parse_program(read_source(case.folder / "program.dl"))
    text = print_program(tree)
    again = parse_program(Source("printed", text))
    assert again == tree
    assert print_program(again) == text
