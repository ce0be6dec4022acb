"""Places, carets, near-miss names, and the catalogue as a whole."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.golden_cases import HERE
from tests.test_cli_errors import CASES, FILES
from whorl.diagnostics.catalogue import CATALOGUE, SECTIONS
from whorl.diagnostics.errors import InternalError, ProgramErrors, UserError
from whorl.diagnostics.names import suggest
from whorl.diagnostics.reference import reference_page
from whorl.diagnostics.source import Source, Span, line_span, show_span
from whorl.diagnostics.wording import Wording, listed, shortened
from whorl.syntax.deltas import parse_deltas
from whorl.syntax.parser import parse_program

ROOT = HERE.parent
# Tests that show codes of their own.
SHOWN_IN = (
    "spark/test_errors.py",
    "spark/test_gone.py",
    "spark/test_mqtt.py",
    "spark/test_recovery.py",
    "spark/test_run.py",
    "spark/test_why.py",
    "test_answers.py",
    "test_demo.py",
    "test_exchange.py",
    "test_mqtt.py",
    "test_partitions.py",
    "test_run.py",
    "test_session.py",
    "test_snapshots.py",
    "test_why.py",
)
# Codes that no test can raise yet, each with the reason.
NOT_SHOWN: dict[str, str] = {}


def shown(text: str, piece: str) -> str:
    """Return the line of a piece of a text, with its carets."""
    start = text.index(piece)
    return show_span(Span(Source("text", text), start, start + len(piece)))


# Places


def test_carets_stand_under_the_piece() -> None:
    assert shown("a(X).\nb(X) :- c(X, Y).\n", "c(X, Y)") == "  2 | b(X) :- c(X, Y).\n    |         ^^^^^^^"


def test_tabs_are_shown_as_spaces() -> None:
    assert shown("\tb(X)\t:- c(X).", "c(X)") == "  1 |  b(X) :- c(X).\n    |          ^^^^"


def test_carriage_returns_are_not_shown() -> None:
    assert shown("a(X).\r\nb(X).\r\n", "b(X).\r\n") == "  2 | b(X).\n    | ^^^^^"


def test_accents_count_once() -> None:
    assert shown('name("Zoe\u0308", X)', "X") == '  1 | name("Zoe\u0308", X)\n    |             ^'


def test_wide_characters_count_twice() -> None:
    assert shown('name("日本", X)', "日本") == '  1 | name("日本", X)\n    |       ^^^^'
    assert shown('name("日本", X)', "X") == '  1 | name("日本", X)\n    |              ^'


def test_invisible_characters_are_shown() -> None:
    assert shown("a\u200b(\x1bX)", "X") == "  1 | a\ufffd(\ufffdX)\n    |     ^"


def test_a_span_over_lines_shows_its_first() -> None:
    assert shown("a(X) :-\n  b(X).", "a(X) :-\n  b(X)") == "  1 | a(X) :-\n    | ^^^^^^^"


def test_long_lines_are_cut_around_the_piece() -> None:
    line, carets = shown("a" * 500 + "XYZ" + "b" * 500, "XYZ").split("\n")
    assert line == "  1 | ..." + "a" * 60 + "XYZ" + "b" * 97 + "..."
    assert carets == "    | " + " " * 63 + "^^^"


def test_an_empty_text_has_a_place() -> None:
    assert show_span(Span(Source("empty", ""), 0, 0)) == "  1 | \n    | ^"


def test_line_numbers_beyond_the_gutter() -> None:
    assert shown("\n" * 1233 + "X", "X") == "1234 | X\n     | ^"


def test_position_counts_from_one() -> None:
    source = Source("text", "ab\n\ncd")
    assert [source.position(offset) for offset in range(6)] == [(1, 1), (1, 2), (1, 3), (2, 1), (3, 1), (3, 2)]
    assert str(Span(source, 4, 6)) == "text:3:1"


@pytest.mark.parametrize(("text", "expected"), [("a\n  +b  \nc", "+b"), ("a\r\n+b\r\n", "+b"), ("a\n\nc", "\n")])
def test_line_span(text: str, expected: str) -> None:
    assert line_span(Source("text", text), 2).text == expected


def test_errors_after_carriage_returns_and_tabs_stand_at_their_place() -> None:
    with pytest.raises(ProgramErrors) as raised:
        parse_program(Source("program.dl", "a(X) :-\tb(X).\r\n\tc(X) :-\td(X\r\n"))
    assert str(raised.value) == (
        "E102 the statement has no end\n"
        "  2 |  c(X) :- d(X\n"
        "    |            ^\n"
        '  Detail: Expected ")" or ",".\n'
        '  Hint: The "(" in line 2, column 11 is not closed.'
    )


def test_errors_in_deltas_after_carriage_returns_stand_at_their_place() -> None:
    with pytest.raises(ProgramErrors) as raised:
        parse_deltas(Source("input.deltas", '@1\r\n\t+name("日本", zwei)\r\n'))
    (error,) = raised.value.errors
    assert error.span is not None
    assert (error.span.line, error.span.text) == (2, "zwei")
    assert str(error).splitlines()[1:3] == ['  2 |  +name("日本", zwei)', "    |                ^^^^"]


def test_an_empty_program_and_an_empty_input_are_no_errors() -> None:
    assert parse_program(Source("program.dl", "")).statements == ()
    assert parse_program(Source("program.dl", " \r\n\t# nothing")).statements == ()
    assert parse_deltas(Source("input.deltas", "")) == ()


# Words


@pytest.mark.parametrize(
    ("name", "known", "expected"),
    [
        ("egde", ["edge", "node"], 'Did you mean "edge"?'),
        ("Edge", ["edge"], 'Did you mean "edge"?'),
        ("edge", ["edge"], ""),
        ("reach", ["reachable", "node"], 'Did you mean "reachable"?'),
        ("node3", ["node1", "node2", "nodes", "node4"], 'Did you mean "node1", "node2" or "node4"?'),
        ("street", ["edge", "node"], ""),
        ("x", [], ""),
        ("intger", ["Integer", "Term"], 'Did you mean "Integer"?'),
    ],
)
def test_suggest(name: str, known: list[str], expected: str) -> None:
    assert suggest(name, known) == expected


def test_wording() -> None:
    fill = Wording().format
    assert fill("{x:a}, {y:a}", x="Integer", y="String") == "an Integer, a String"
    assert fill("{x:row}, {y:row}, {z:row}", x=1, y=2, z="at least 1") == "1 row, 2 rows, at least 1 row"
    assert fill("{x}", x="{y:a}") == "{y:a}", "facts are not templates"


def test_listed() -> None:
    assert [listed(words) for words in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == ["", "a", "a or b", "a, b or c"]


def test_shortened() -> None:
    assert shortened("abcdef", 6) == "abcdef"
    assert shortened("abcdefg", 6) == "abc..."


def test_internal_errors_ask_for_a_report() -> None:
    assert str(InternalError("lost a row")) == (
        "internal error: lost a row\nThis is a fault in Whorl. Please report it with the program."
    )


def test_errors_of_a_program_are_sorted_and_unique() -> None:
    source = Source("text", "b a")
    first, second = (UserError("E210", Span(source, at, at + 1)) for at in (0, 2))
    errors = ProgramErrors([second, first, UserError("E210", Span(source, 2, 3))])
    assert [error.span for error in errors.errors] == [first.span, second.span]
    assert str(errors) == f"{first}\n{second}"


# The catalogue


@pytest.mark.parametrize("code", CATALOGUE)
def test_texts_keep_the_style(code: str) -> None:
    """A message is lower case and no sentence; detail and hint are sentences."""
    entry = CATALOGUE[code]
    assert code[:2] in SECTIONS
    first = re.sub(r"^[{\"]+", "", entry.message)[0]
    assert first.islower() or entry.message[0] in '{"'
    assert not entry.message.endswith((".", "?", "!"))
    for text in (entry.detail, entry.hint):
        assert not text or text in ("{hint}", "{detail}") or re.match(r'[A-Z{"].*[.?]$', text), text
    words = set(re.findall(r"[a-z]+", f"{entry.message} {entry.detail} {entry.hint}".lower()))
    assert words.isdisjoint({"unable", "bad", "illegal", "unknown", "simply", "invalid", "please"})


def test_codes_stand_in_order() -> None:
    assert list(CATALOGUE) == sorted(CATALOGUE)


def test_reference_page_is_up_to_date() -> None:
    page = (ROOT / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
    assert page == reference_page(), "run: make docs"


def test_reference_page_shows_facts_in_brackets() -> None:
    page = reference_page().replace("\u2039", "<").replace("\u203a", ">")
    assert '**E220** variable "<name>" stands for a <first> and for a <second>\n' in page
    assert '**E204** relation "<name>" has <expected> attributes, not <found>\n' in page
    assert "{" not in page


def codes_in(paths: list[Path]) -> set[str]:
    """Return the codes that files mention."""
    return {code for path in paths for code in re.findall(r"\bE\d{3}\b", path.read_text(encoding="utf-8"))}


def test_every_code_is_shown_by_a_test() -> None:
    expected = [*HERE.glob("golden_errors/**/expected.err"), *HERE.glob("golden/**/expected.err")]
    expected += [HERE / name for name in SHOWN_IN]
    tested = (
        codes_in(expected) | {case.code for case in CASES.values()} | {error[:4] for _args, error in FILES.values()}
    )
    assert tested - set(CATALOGUE) == set()
    assert set(CATALOGUE) - tested == set(NOT_SHOWN)


def test_every_code_is_raised_somewhere() -> None:
    sources = [path for path in (ROOT / "src").glob("**/*.py") if path.name != "catalogue.py"]
    assert set(CATALOGUE) == codes_in(sources) & set(CATALOGUE)
