"""Whatever the text, there is an answer or a coded error, and soon: 20,000 mutants of programs and of delta files.

A mutant is made from a piece of the golden corpus or of the seeds below: characters and tokens are deleted, doubled,
swapped and replaced, two texts are spliced, random bytes come in between. A program that still compiles gets an epoch.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from types import FrameType

import pytest

from tests.golden_cases import HERE
from whorl.analysis.program import Relation
from whorl.diagnostics.errors import ProgramErrors, UserError
from whorl.diagnostics.source import Source
from whorl.logical.compile import compile_program
from whorl.logical.plan import LogicalPlan
from whorl.model.builtins import BUILTINS
from whorl.model.delta import Change, Epoch
from whorl.model.limits import Limits
from whorl.model.types import Type
from whorl.model.values import Term, Value, list_value, storable
from whorl.oracle.session import Oracle
from whorl.syntax.deltas import format_deltas, parse_deltas

PROGRAMS, DELTAS = 8_000, 12_000
LIMITS = Limits(rounds=50, tuples=2_000, depth=50)
PATIENCE_S = 5.0  # what one mutant may take

SEEDS = (
    'p(X, Y) :- e(X, Y).\np(X, Z) :- p(X, Y), e(Y, Z), X != Z.\nquery p("a", Y).',
    "STREAM s(T: Timestamp, A: Integer KEY, B: Float) WINDOW(60 minutes, 5 s).\nr(T, A, sum<B>) <- s(T, A, B).",
    "{m(T: Timestamp, A: String), k(A: List)}\nRELATION q(A: Term, B: Boolean) TTL 3 days.\nx(A) :- m(_, A), !k([A]).",
    "b(X, mmin<C>) :- w(X, C).\nb(Y, mmin<C>) :- b(X, C1), w2(X, Y, C2), C = C1 + C2, C < 2^5.",
    "o(X) :- start(X).\no(X) :- n(X, N), N >= 2.\nn(Y, mcount<(X, 1)>) :- o(X), e(X, Y).",
    "l(X, [X]) :- v(X).\nl(Y, [Y | P]) :- l(X, P), e(X, Y), not member(Y, P), length(P) <= 3.\nquery l(_, P).",
    "h(X, 0) :- g(X).\nh(Y, J + 1) :- h(X, J), e(X, Y), J < 4, not z(Y, J).\nz(Y, J) :- h(Y, K), h(_, J), K <= J.",
    'c(X, cat(to_string(X), "-", S)) :- e(X, S), (strlen(S) > 1 ; contains("a", S)), X % 2 = 1.  # note',
    'f(1, -2.5e3, "q\\"\\n", true, nil, t(1, [2, 3])).\ng(A, f(B, -A)) :- f(A, B, ...), largest(M, A, 3), A / M < 1.',
    "a(X), b(Y) :- e(X, Y), -1 <= X < Y <= 10 * (Y - X)^2.\nd(count<distinct X>, avg<Y>, max<X>) :- a(X), b(Y).",
    "u(X, Y) :- e(X, f(Y, [A, B | T])), T = [C], A ≤ B, B ≠ C % remainder\n, distance(A, B) >= 0.5.",
)
SEED_DELTAS = (
    '@1\n+e(1, 2)\n-e(2, "x")\n@2 time=120\n+s(5, [1, f("a", 2.5), true], nil)\n# end',
    "@3\n+p()\n−q(-9223372036854775808)\n+r(1e5, -0.0, 'it''s').\n\n@4 time=-5\n-t(g([], [[]]))",
)
_TOKENS = re.compile(r"\w+|\s+|[^\w\s]")
_PIECES = (
    *"()[]{},.;:|=<>+-*/%^!_'@#\\\"",
    *(
        ":-",
        "<-",
        "←",
        "!=",
        "<=",
        ">=",
        "≤",
        "...",
        "//",
        "X",
        "Y",
        "e",
        "p",
        "f",
        "not",
        "NOT",
        "nil",
        "true",
        "false",
    ),
    *("query", "STREAM", "RELATION", "WINDOW", "TTL", "KEY", "COUNT", "Integer", "Timestamp", "List", "s", "days"),
    *("distinct", "count", "sum", "min", "mmin", "msum", "avg", "member", "largest", "length", "to_number", "match"),
    *("0", "1", "-1", "2.5", "1e400", "9223372036854775807", "9223372036854775808", "99999999999999999999"),
    *('"a"', "'b'", "é", "²", "٣", "\x00", "\U0001f600", "\u2028", "\x85", "\r", "\f"),
)
Mutation = Callable[[Random, str, str], str]


def _delete(random: Random, text: str, _other: str) -> str:
    start = random.randrange(len(text) + 1)
    return text[:start] + text[start + random.choice((1, 1, 1, 2, 5)) :]


def _double(random: Random, text: str, _other: str) -> str:
    start = random.randrange(len(text) + 1)
    stop = start + random.choice((1, 1, 3, 10))
    return text[:stop] + text[start:]


def _swap(random: Random, text: str, _other: str) -> str:
    if len(text) < 2:
        return text
    place = random.randrange(len(text) - 1)
    return text[:place] + text[place + 1] + text[place] + text[place + 2 :]


def _tokens(change: Callable[[Random, list[str]], None]) -> Mutation:
    def mutate(random: Random, text: str, _other: str) -> str:
        tokens = _TOKENS.findall(text)
        if tokens:
            change(random, tokens)
        return "".join(tokens)

    return mutate


def _delete_token(random: Random, tokens: list[str]) -> None:
    del tokens[random.randrange(len(tokens))]


def _double_token(random: Random, tokens: list[str]) -> None:
    place = random.randrange(len(tokens))
    tokens.insert(place, tokens[place])


def _swap_tokens(random: Random, tokens: list[str]) -> None:
    one, other = random.randrange(len(tokens)), random.randrange(len(tokens))
    tokens[one], tokens[other] = tokens[other], tokens[one]


def _replace_token(random: Random, tokens: list[str]) -> None:
    tokens[random.randrange(len(tokens))] = random.choice(_PIECES)


def _exchange(random: Random, text: str, other: str) -> str:
    """Put a word or a sign of one text in the place of one of the other: what comes out is mostly still a program."""
    tokens = _TOKENS.findall(text)
    places = [place for place, token in enumerate(tokens) if not token.isspace()]
    if not places:
        return text
    place = random.choice(places)
    word = tokens[place].isalnum()
    same = [token for token in _TOKENS.findall(random.choice((text, other))) if token.isalnum() is word]
    tokens[place] = random.choice(same or ["X"])
    return "".join(tokens)


def _insert(random: Random, text: str, _other: str) -> str:
    place = random.randrange(len(text) + 1)
    return text[:place] + random.choice(_PIECES) + text[place:]


def _splice(random: Random, text: str, other: str) -> str:
    return text[: random.randrange(len(text) + 1)] + other[random.randrange(len(other) + 1) :]


def _bytes(random: Random, text: str, _other: str) -> str:
    place = random.randrange(len(text) + 1)
    return text[:place] + random.randbytes(random.choice((1, 2, 8))).decode("latin-1") + text[place:]


def _nest(random: Random, text: str, _other: str) -> str:
    place = random.randrange(len(text) + 1)
    depth = random.choice((3, 30, 400))
    return text[:place] + random.choice("([{-!") * depth + text[place:]


MUTATIONS: tuple[Mutation, ...] = (
    _delete,
    _double,
    _swap,
    *(_tokens(change) for change in (_delete_token, _double_token, _swap_tokens, _replace_token, _replace_token)),
    *(_exchange,) * 6,
    _insert,
    _splice,
    _bytes,
    _nest,
)


def _mutants(corpus: list[str], count: int, seed: int) -> Iterator[str]:
    random = Random(seed)
    for _ in range(count):
        text = random.choice(corpus)
        for _ in range(random.choice((0, 1, 1, 1, 2, 3))):
            text = random.choice(MUTATIONS)(random, text, random.choice(corpus))
        yield text


def _corpus(pattern: str, seeds: tuple[str, ...], size: int) -> list[str]:
    """Return the seeds and pieces of files, each of a few whole lines, since short texts parse faster."""
    pieces = list(seeds)
    for path in sorted(HERE.glob(pattern)):
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        pieces.extend("\n".join(lines[start : start + size]) for start in range(0, len(lines), size))
    return pieces


@contextmanager
def _patience(text: str) -> Iterator[None]:
    """Fail with the text at hand if it takes too long."""

    def give_up(_signal: int, _frame: FrameType | None) -> None:
        pytest.fail(f"no answer within {PATIENCE_S} s:\n{text}")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _value(random: Random, type_: Type) -> Value:
    number = random.choice((0, 1, 2, 3, -1))
    values: dict[Type, Value] = {
        Type.FLOAT: number / 2,
        Type.STRING: random.choice(("a", "b", "1")),
        Type.BOOLEAN: number > 1,
        Type.LIST: list_value((number,)),
        Type.TERM: Term("f", (number, list_value((number, 1)))),
    }
    return values.get(type_, number)


def _row(random: Random, relation: Relation) -> tuple[Value, ...]:
    stamp: tuple[Value, ...] = (random.randrange(5),) if relation.lifted else ()
    return stamp + tuple(_value(random, column.type) for column in relation.columns)


def _epochs(plan: LogicalPlan, random: Random) -> Iterator[Epoch]:
    for number in (1, 2):
        changes = [
            Change(relation.name, _row(random, relation), random.choice((1, 1, 1, -1)))
            for relation in plan.program.base_relations()
            for _ in range(3)
        ]
        yield Epoch(number, tuple(changes), None)


def _compile_and_run(text: str) -> str:
    """Return how a program ends: the code of its error, or `done`."""
    source = Source("mutant", text)
    try:
        oracle = Oracle(lambda types: compile_program(source, data_types=types), LIMITS)
        for epoch in _epochs(oracle.plan, Random(len(text))):
            format_deltas(oracle.commit(epoch).deltas)
    except (UserError, ProgramErrors) as error:
        return _shown(error)
    return "done"


def _shown(error: UserError | ProgramErrors) -> str:
    assert str(error)
    errors = error.errors if isinstance(error, ProgramErrors) else (error,)
    codes = [each.to_json()["code"] for each in errors]
    return str(codes[0])


def _read_deltas(text: str) -> str:
    try:
        parse_deltas(Source("mutant", text))
    except ProgramErrors as error:
        return _shown(error)
    return "done"


def _outcomes(mutants: Iterator[str], run: Callable[[str], str]) -> dict[str, int]:
    outcomes: dict[str, int] = {}
    for text in mutants:
        with _patience(text):
            try:
                outcome = run(text)
            except Exception as error:
                error.add_note(f"The mutant:\n{text}\n{text!r}")
                raise
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    return outcomes


def test_every_program_gives_an_answer_or_a_coded_error() -> None:
    corpus = _corpus("golden/*/*/program.dl", SEEDS, 3)
    outcomes = _outcomes(_mutants(corpus, PROGRAMS, seed=1), _compile_and_run)
    assert outcomes.pop("done") > PROGRAMS // 5, "enough mutants live"
    assert len(outcomes) > 20, "and the others die of many causes"


def test_every_delta_file_gives_an_answer_or_a_coded_error() -> None:
    corpus = _corpus("golden/*/*/input.deltas", SEED_DELTAS, 6)
    outcomes = _outcomes(_mutants(corpus, DELTAS, seed=2), _read_deltas)
    assert outcomes.pop("done") > DELTAS // 5, "enough mutants live"


VALUES: tuple[Value, ...] = (
    *(0, -1, 5, 2**63 - 1, -(2**63), 0.0, 1e308, -2.5, 1e-320, True, False),
    *("", "a", "1", "٣", "(", "x" * 20_000),
    *(list_value(()), list_value((1, "a")), list_value((1e308, -1e308)), Term("f", ()), Term("f", (1, 2.5, True))),
)


@pytest.mark.parametrize("name", BUILTINS)
def test_every_function_takes_values_of_every_kind(name: str) -> None:
    """What a list holds has no type before it is there; so functions must be ready for anything."""
    names = [f"A{position}" for position in range(len(BUILTINS[name].parameters))]
    members = ", ".join(f"member({each}, L)" for each in names)
    source = Source("kinds", f"p(X) :- v(L), {members}, X = {name}({', '.join(names)}).")
    oracle = Oracle(lambda types: compile_program(source, data_types=types))
    oracle.commit(Epoch(1, (Change("v", (list_value(VALUES),), 1),)))
    assert all(storable(value) for row in oracle.rows("p") for value in row)
