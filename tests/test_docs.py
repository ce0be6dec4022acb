"""Every fenced example of the README and the docs runs, and what the pages say of the code is there.

A fence names its kind, and a file if others need it:

    datalog [NAME.dl] [refused]        a program; it must pass the checks, or be refused
    deltas [NAME.deltas] [refused]     a file of changes; it must parse, or be refused
    python [NAME.py]                   runs; with >>> as a doctest, which knows the names of those before it
    csv NAME.csv                       a file of rows
    console                            `$ whorl ...` lines, each followed by exactly what it prints; also `$ cat FILE`
    text                               anything that is not run

Files are saved in one folder a page, where the commands run. A line `...` in expected output stands for any lines;
times in ms are not compared. `pytest tests/test_docs.py --update-golden` rewrites expected output: read it before you
keep it.
"""

from __future__ import annotations

import doctest
import importlib
import io
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import whorl.hosts.inprocess  # noqa: F401  # compiles the kernel where it is not on disk, before anybody looks
from whorl.analysis.durations import UNITS
from whorl.analysis.program import AGGREGATES
from whorl.cli.main import app, main
from whorl.diagnostics.catalogue import CATALOGUE
from whorl.diagnostics.errors import WhorlError
from whorl.diagnostics.source import Source
from whorl.logical.compile import compile_program
from whorl.logical.rewrites import NAMES
from whorl.model.builtins import BUILTINS, PREDICATES
from whorl.model.types import SPELLINGS
from whorl.syntax.deltas import parse_deltas

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md")))
EXTENSIONS = {"datalog": ".dl", "deltas": ".deltas", "python": ".py", "csv": ".csv"}
FENCE = re.compile(r"^```(?P<info>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


@dataclass(frozen=True)
class Fence:
    """One fenced example."""

    kind: str
    words: tuple[str, ...]
    body: str
    start: int
    line: int

    @property
    def file(self) -> str | None:
        extension = EXTENSIONS.get(self.kind)
        return next((word for word in self.words if extension and word.endswith(extension)), None)

    @property
    def refused(self) -> bool:
        return "refused" in self.words


def _fences(page: Path) -> Iterator[Fence]:
    text = page.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        kind, *words = match["info"].split() or [""]
        yield Fence(kind, tuple(words), match["body"], match.start("body"), text.count("\n", 0, match.start()) + 1)


def _prose(page: Path) -> str:
    return FENCE.sub("", page.read_text(encoding="utf-8"))


# Examples


@every_page
def test_examples(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, update_golden: bool) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    rewritten: list[tuple[Fence, str]] = []
    names: dict[str, Any] = {}
    for fence in _fences(page):
        if fence.file is not None:
            (tmp_path / fence.file).write_text(fence.body, encoding="utf-8")
        try:
            body = _run(fence, names, monkeypatch)
        except Exception as error:
            error.add_note(f"in the example at {page.relative_to(ROOT)}:{fence.line}")
            raise
        if body != fence.body:
            rewritten.append((fence, body))
    if update_golden:
        _rewrite(page, rewritten)
        return
    for fence, body in rewritten:
        assert body == fence.body, f"the example at {page.relative_to(ROOT)}:{fence.line} prints something else"


def _rewrite(page: Path, changes: list[tuple[Fence, str]]) -> None:
    text = page.read_text(encoding="utf-8")
    for fence, body in reversed(changes):
        text = text[: fence.start] + body + text[fence.start + len(fence.body) :]
    page.write_text(text, encoding="utf-8")


def _run(fence: Fence, names: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> str:
    """Run one example; return its text as it should be."""
    strange = set(fence.words) - {fence.file, "refused"}
    assert fence.kind in (*EXTENSIONS, "console", "text"), f"a fence of no known kind: {fence.kind!r}"
    assert not strange, f"words of no meaning after {fence.kind}: {strange}"
    if fence.kind == "console":
        return "".join(_command(lines, monkeypatch) for lines in _commands(fence.body))
    if fence.kind == "python":
        _run_python(fence, names)
    elif fence.kind in ("datalog", "deltas"):
        _check_text(fence)
    return fence.body


def _check_text(fence: Fence) -> None:
    source = Source(fence.file or "example", fence.body)
    read = compile_program if fence.kind == "datalog" else parse_deltas
    if not fence.refused:
        read(source)
        return
    with pytest.raises(WhorlError):
        read(source)


def _run_python(fence: Fence, names: dict[str, Any]) -> None:
    if ">>>" not in fence.body:
        exec(compile(fence.body, fence.file or "example", "exec"), {"__name__": "example"})
        return
    test = doctest.DocTestParser().get_doctest(fence.body, names, "example", None, fence.line)
    report = io.StringIO()
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(test, out=report.write, clear_globs=False)
    names.update(test.globs)
    assert not runner.failures, report.getvalue()


def _commands(body: str) -> Iterator[list[str]]:
    """Cut a console example into commands, each with the lines it prints."""
    lines = body.splitlines(keepends=True)
    starts = [index for index, line in enumerate(lines) if line.startswith("$ ")]
    assert starts, "a console example starts with a command"
    assert starts[0] == 0, "a console example starts with a command"
    for start, stop in zip(starts, [*starts[1:], len(lines)], strict=True):
        yield lines[start:stop]


def _command(lines: list[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """Run one command; return it with what it prints, or as it stands if that agrees."""
    expected = "".join(lines[1:])
    program, *args = shlex.split(lines[0][2:])
    assert program in ("cat", "whorl", ".venv/bin/whorl"), f"{program} is not run here; use a text fence"
    output, status = (Path(args[0]).read_text(), 0) if program == "cat" else _whorl(args, monkeypatch)
    wrong = re.search(r"^(E\d{3} |Error: )", output, re.MULTILINE) is not None
    assert bool(status) is wrong, f"exit status {status}:\n{output}"
    if _agrees(expected, output):
        return "".join(lines)
    assert "...\n" not in lines, f"this is printed:\n{output}"
    return lines[0] + output


def _whorl(args: list[str], monkeypatch: pytest.MonkeyPatch) -> tuple[str, int]:
    out = io.StringIO()
    monkeypatch.setattr(sys, "argv", ["whorl", *args])
    with redirect_stdout(out), redirect_stderr(out):
        try:
            main()
        except SystemExit as stop:
            return out.getvalue(), stop.code if isinstance(stop.code, int) else 1
    return out.getvalue(), 0


def _agrees(expected: str, found: str) -> bool:
    parts = [re.escape(_untimed(part)) for part in re.split(r"^\.\.\.\n", expected, flags=re.MULTILINE)]
    return re.fullmatch(r"(?:.*\n)*?".join(parts), _untimed(found)) is not None


def _untimed(text: str) -> str:
    return re.sub(r" *\d+\.\d+ ms\b", " 0 ms", text)


def test_elision_and_times() -> None:
    assert _agrees("a\n...\nc 1.0 ms\n", "a\nb\nb\nc 27.3 ms\n")
    assert not _agrees("a\n...\nc\n", "a\nb\nd\n")
    assert not _agrees("a\n", "a\nb\n")


# What pages say of each other and of the code


@every_page
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(#[^)\s]*)?\)", _prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        other = (page.parent / target).resolve() if target else page
        assert other.exists(), f"{target} does not exist"
        if anchor:
            assert anchor[1:] in _anchors(other), f"{target}{anchor} does not exist"


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", _prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_index_links_every_page() -> None:
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")} - {"index.md"}
    assert pages <= set(re.findall(r"\]\(([^)#]*)", index))


@every_page
def test_named_code_exists(page: Path) -> None:
    """A rename finds the pages that name the old name."""
    for name in re.findall(r"`([a-z_/]+/[a-z_]+\.(?:py|lark|dl)|[a-z_]+\.(?:py|lark))`", _prose(page)):
        if "/" in name:
            assert (ROOT / name).exists() or (ROOT / "src" / "whorl" / name).exists(), f"no file {name}"
    for name in re.findall(r"`((?:[A-Za-z_]+\.)+[A-Za-z_]+)`", _prose(page)):
        folder = name.split(".")[0]
        if (ROOT / "src" / "whorl" / folder).is_dir():
            assert _resolves(f"whorl.{name}"), f"the code has no {name}"


def _resolves(name: str) -> bool:
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            found = getattr(found, part, None) or getattr(found, "__dataclass_fields__", {}).get(part)
        return found is not None
    return False


@every_page
def test_named_targets_and_codes_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"(?:`|^)make ([a-z]+)", text, re.MULTILINE)) <= targets
    assert set(re.findall(r"\bE\d{3}\b", text)) <= set(CATALOGUE)


def test_the_language_page_is_complete() -> None:
    text = (DOCS / "language.md").read_text(encoding="utf-8")
    words = {word for code in re.findall(r"`([^`\n]+)`", text) for word in re.findall(r"\w+", code)}
    assert set(BUILTINS) | PREDICATES <= words
    assert set(AGGREGATES) <= words
    assert set(UNITS) <= words
    assert {str(found) for found in SPELLINGS.values()} | set(SPELLINGS) <= {word.lower() for word in words} | words
    for function in BUILTINS.values():
        assert f"`{function.signature}`" in text, f"{function.signature} is missing"


def test_the_commands_page_is_complete() -> None:
    text = (DOCS / "commands.md").read_text(encoding="utf-8")
    for command in app.registered_commands:
        assert command.callback is not None
        assert f"$ whorl {command.callback.__name__} --help" in text
    assert all(f"`{name}`" in text for name in NAMES)


@pytest.mark.parametrize("page", sorted((DOCS / "adr").glob("*.md")), ids=lambda page: page.stem)
def test_decisions_have_their_parts(page: Path) -> None:
    assert re.fullmatch(r"\d{4}(-[a-z]+)+", page.stem)
    headings = re.findall(r"^## (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert headings == ["Context", "Decision", "Refused alternatives", "Consequences"]
