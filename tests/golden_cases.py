"""Golden cases: a folder each, run under every configuration that fits.

`program.dl` and `input.deltas` go in, `expected.deltas` comes out. `functions.py` holds Python functions,
`options.toml` limits, `explain.txt` the plan when it matters, `expected.err` the error that ends the run.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from whorl.cli.files import load_functions, read_source
from whorl.cli.replay import replay_epochs
from whorl.diagnostics.errors import ProgramErrors, UserError
from whorl.logical.compile import compile_program
from whorl.model.limits import Limits
from whorl.syntax.deltas import format_deltas, format_header, parse_deltas
from whorl.views.session import HostFactory

HERE = Path(__file__).parent
GOLDEN = HERE / "golden"


@dataclass(frozen=True)
class Config:
    """One way to run a case: a strategy, and the rewrites left out."""

    strategy: str
    without: list[str]


CONFIGS = {path.stem: Config(**tomllib.loads(path.read_text())) for path in sorted((HERE / "configs").glob("*.toml"))}


@dataclass(frozen=True)
class Case:
    """One golden case."""

    folder: Path

    @property
    def name(self) -> str:
        return str(self.folder.relative_to(GOLDEN))

    def options(self) -> dict[str, int]:
        path = self.folder / "options.toml"
        return tomllib.loads(path.read_text()) if path.exists() else {}

    def functions_path(self) -> Path | None:
        path = self.folder / "functions.py"
        return path if path.exists() else None

    def run(self, config: Config) -> tuple[str, str]:
        """Return what the case prints, and the error that ends it, if one does."""
        output, error = "", ""
        lines = replay_epochs(
            read_source(self.folder / "program.dl"),
            read_source(self.folder / "input.deltas"),
            load_functions(self.functions_path()),
            Limits(**self.options()),
            config.without,
            config.strategy,
            as_json=False,
            report=False,
        )
        try:
            for line in lines:
                output += f"{line}\n"
        except (UserError, ProgramErrors) as raised:
            error = f"{raised}\n"
        return output, error

    def check(self, make: HostFactory, *, may_not_serve: bool = False) -> None:
        """Compare what a host gives, epoch by epoch, with what is expected, and the error that ends it.

        A host whose strategy may not serve the program may say so instead.
        """
        program, functions = read_source(self.folder / "program.dl"), load_functions(self.functions_path())
        output, code = "", ""
        try:
            host = make(lambda types: compile_program(program, functions, types), Limits(**self.options()))
            for epoch in parse_deltas(read_source(self.folder / "input.deltas")):
                report = host.commit(epoch)
                lines = [format_header(report.number, report.time), *format_deltas(report.deltas)]
                output += "".join(f"{line}\n" for line in lines)
        except UserError as error:
            code = error.code
        except ProgramErrors as errors:
            code = errors.errors[0].code
        if may_not_serve and code == "E402":
            return
        assert output == expected(self.folder / "expected.deltas")
        assert code == expected(self.folder / "expected.err").split(" ")[0]


def cases() -> list[Case]:
    """Return every golden case."""
    return [Case(path.parent) for path in sorted(GOLDEN.glob("**/program.dl"))]


def expected(path: Path) -> str:
    """Return the text of an expected file, empty if there is none."""
    return path.read_text(encoding="utf-8") if path.exists() else ""
