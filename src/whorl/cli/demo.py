"""`whorl demo network`: watch views follow a small generated network whose links fail and recover.

The seed makes the network and all that happens to it; the program beside this file (`demos/network.dl`) says what is
kept. The reference evaluator keeps it, by computing every view afresh in each epoch, and the demo says so.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from importlib.resources import files
from itertools import combinations
from pathlib import Path
from random import Random

from rich import box
from rich.columns import Columns
from rich.console import Console, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from whorl.diagnostics.source import Source
from whorl.logical.compile import compile_program
from whorl.model.delta import Change, Delta, Epoch
from whorl.model.report import EpochReport
from whorl.model.values import Row, format_row
from whorl.oracle.session import Oracle
from whorl.syntax.deltas import format_deltas, format_header

DEMOS = ("network",)

_PLACES = ("Bern", "Brno", "Cork", "Gent", "Graz", "Kiel", "Lviv", "Oslo", "Riga")
_PAIRS = len(_PLACES) * (len(_PLACES) - 1) // 2
_CHORDS = 3
_DEAREST = 9
_FAILING = 0.7
_MOST_DOWN = 4
_SHOWN = 6
_PAUSE_S = 1.2
_WIDTH = 78
_COLUMN = 23

Link = tuple[str, str]


# The network


@dataclass(frozen=True, slots=True)
class Step:
    """One epoch, and what happens in it, in words: one for each change."""

    epoch: Epoch
    words: tuple[str, ...]


class Network:
    """Links that are up with a cost, or down. Every change is drawn from one seeded generator."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self.down: set[Link] = set()
        self.costs = {link: self._random.randint(1, _DEAREST) for link in self._draw_links()}

    def _draw_links(self) -> list[Link]:
        """Draw a tree, so that all places are connected, and a few chords, so that there are detours."""
        places = list(_PLACES)
        self._random.shuffle(places)
        tree = {_link(place, self._random.choice(places[max(0, i - 3) : i])) for i, place in enumerate(places) if i}
        others = [pair for pair in combinations(_PLACES, 2) if pair not in tree]
        return sorted(tree | set(self._random.sample(others, _CHORDS)))

    def steps(self, count: int) -> Iterator[Step]:
        """Yield the first epoch, in which every link comes up, and then one with a change or two each."""
        changes = {link: ("up", self._fact(link, 1)) for link in self.costs}
        for number in range(1, count + 1):
            words, facts = zip(*changes.values(), strict=True)
            yield Step(Epoch(number, facts), words)
            size = self._random.choice((1, 1, 2))
            changes = {link: self._change(link) for link in self._draw_changing(size)}

    def _draw_changing(self, size: int) -> list[Link]:
        """Draw the links that change next; when many are down, one of them is sure to recover."""
        chosen = self._random.sample(sorted(self.costs), size)
        if len(self.down) >= _MOST_DOWN and not self.down & set(chosen):
            chosen[0] = self._random.choice(sorted(self.down))
        return chosen

    def _change(self, link: Link) -> tuple[str, Change]:
        if link in self.down:
            self.down.remove(link)
            return "recovers", self._fact(link, 1)
        if self._random.random() < _FAILING:
            self.down.add(link)
            return "fails", self._fact(link, -1)
        self.costs[link] = self._random.choice([cost for cost in range(1, _DEAREST + 1) if cost != self.costs[link]])
        return "now costs", self._fact(link, 1)

    def _fact(self, link: Link, weight: int) -> Change:
        return Change("link", (*link, self.costs[link]), weight)


def _link(left: str, right: str) -> Link:
    return (left, right) if left < right else (right, left)


# The run


def program_path() -> Path:
    """Return where the program of the demo lies."""
    return Path(str(files("whorl.cli").joinpath("demos/network.dl")))


def run_demo(console: Console, epochs: int, seed: int, *, plain: bool) -> None:
    """Run the demo: in colour and with pauses on a terminal, at once elsewhere, as bare lines with ``plain``."""
    path = program_path()
    text = path.read_text(encoding="utf-8")
    oracle = Oracle(lambda types: compile_program(Source(path.name, text), (), types))
    network = Network(seed)
    if plain:
        for line in _plain_lines(network, oracle, epochs):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    else:
        _watch(console, text, network, oracle, epochs)
    console.print(_farewell(path, epochs, seed), markup=False, highlight=False, soft_wrap=True)


def save_demo(folder: Path, epochs: int, seed: int) -> None:
    """Write the program and the changes of a run as files, to replay and to play with."""
    lines: list[str] = []
    for step in Network(seed).steps(epochs):
        lines.append(format_header(step.epoch.number, step.epoch.time))
        lines.extend(_signed(change) for change in step.epoch.changes)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "network.dl").write_text(program_path().read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "network.deltas").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _signed(change: Change) -> str:
    return ("+" if change.weight > 0 else "-") + format_row(change.relation, change.row)


def _farewell(path: Path, epochs: int, seed: int) -> str:
    here = Path.cwd()
    shown = path.relative_to(here) if path.is_relative_to(here) else path
    return (
        "\nIn each epoch the reference evaluator computed every view afresh, and printed the difference.\n"
        "With --strategy auto, whorl replay follows the change instead.\n"
        f"\nThe program: {shown}\n"
        f"Another run: whorl demo network --seed {seed + 1}\n"
        "Keep program and changes, edit them, run them again:\n"
        f"  whorl demo network --seed {seed} --epochs {epochs} --save whorl-demo\n"
        "  whorl replay whorl-demo/network.dl whorl-demo/network.deltas"
    )


# Bare lines


def _plain_lines(network: Network, oracle: Oracle, epochs: int) -> Iterator[str]:
    for step in network.steps(epochs):
        result = oracle.commit(step.epoch)
        yield f"epoch {step.epoch.number}"
        yield from (f"  in   {_signed(change)}" for change in step.epoch.changes)
        yield from (f"  out  {line}" for line in format_deltas(result.deltas))
        yield f"  now  {_totals(network, oracle)}"


def _totals(network: Network, oracle: Oracle) -> str:
    up = len(network.costs) - len(network.down)
    connected = len(oracle.rows("connected"))
    return f"{up} of {len(network.costs)} links up, {connected} of {_PAIRS} pairs connected"


# The live view


def _watch(console: Console, text: str, network: Network, oracle: Oracle, epochs: int) -> None:
    """Print a table for each epoch; on a terminal the network stands below, and there is time to look."""
    console.print(Panel(Text(text.strip()), title="the program", title_align="left", border_style="dim", expand=False))
    live = Live(console=console, auto_refresh=False) if console.is_terminal else None
    with live or nullcontext():
        for step in network.steps(epochs):
            result = oracle.commit(step.epoch)
            console.print(_epoch_table(step, result, _totals(network, oracle), console.width))
            if live is not None:
                title = f"the network after epoch {step.epoch.number} of {epochs}"
                live.update(_state(network, title, min(_WIDTH, console.width)), refresh=True)
                time.sleep(_PAUSE_S if step.epoch.number < epochs else 0)


def _epoch_table(step: Step, result: EpochReport, totals: str, width: int) -> Table:
    number = Text(f"epoch {step.epoch.number}", style="bold")
    title = Text.assemble(number, (f"   {totals}   {result.seconds * 1000:.1f} ms", "dim"))
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", title_style="", pad_edge=False)
    for name in ("in: links", "out: connected pairs", "out: cheapest routes"):
        table.add_column(name, width=min(_COLUMN, width // 3 - 3))
    changes = zip(step.words, step.epoch.changes, strict=True)
    table.add_row(
        _cell([_link_line(word, change) for word, change in changes]),
        _cell(_pair_lines(result.deltas.get("connected", Delta()))),
        _cell(_route_lines(result.deltas.get("route", Delta()))),
    )
    return table


def _cell(lines: Sequence[Text]) -> RenderableType:
    if not lines:
        return Text("nothing", style="dim")
    shown = list(lines[:_SHOWN])
    if len(lines) > _SHOWN:
        shown.append(Text(f"and {len(lines) - _SHOWN} more", style="dim"))
    return Text("\n").join(shown)


def _link_line(word: str, change: Change) -> Text:
    name, cost = _pair(change.row), change.row[-1]
    if change.weight < 0:
        return Text(f"- {name} {word}", style="red")
    if word == "now costs":
        return Text(f"+ {name} {word} {cost}", style="cyan")
    return Text(f"+ {name} {word}, {cost}", style="green")


def _pair_lines(delta: Delta) -> list[Text]:
    return [Text(f"- {_pair(row)}", style="red") for row in delta.deleted] + [
        Text(f"+ {_pair(row)}", style="green") for row in delta.inserted
    ]


def _route_lines(delta: Delta) -> list[Text]:
    """Show a route that only changed its cost on one line: dearer in yellow, cheaper in green."""
    old = {_pair(row): row[-1] for row in delta.deleted}
    new = {_pair(row): row[-1] for row in delta.inserted}
    lines: list[Text] = []
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name), new.get(name)
        if before is None:
            lines.append(Text(f"+ {name} {after}", style="green"))
        elif after is None:
            lines.append(Text(f"- {name} {before}", style="red"))
        else:
            dearer = isinstance(before, int) and isinstance(after, int) and after > before
            lines.append(Text(f"  {name} {before} → {after}", style="yellow" if dearer else "green"))
    return lines


def _pair(row: Row) -> str:
    return f"{row[0]}–{row[1]}"


def _state(network: Network, title: str, width: int) -> RenderableType:
    links = [_link_state(link, cost, up=link not in network.down) for link, cost in sorted(network.costs.items())]
    body = Columns(links, equal=True, padding=(0, 3))
    return Panel(body, title=title, title_align="left", border_style="blue", width=width)


def _link_state(link: Link, cost: int, *, up: bool) -> Text:
    name = "–".join(link)
    return Text.assemble(("● ", "green"), f"{name} {cost:>4}") if up else Text(f"○ {name} down", style="red")
