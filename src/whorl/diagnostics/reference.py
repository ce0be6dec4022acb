"""Write the reference page of error codes: `python -m whorl.diagnostics.reference`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from whorl.diagnostics.catalogue import CATALOGUE, SECTIONS

_FACT = re.compile(r"\{(?P<name>\w+)(?::(?P<wording>\w+))?\}")


def _show(template: str) -> str:
    """Return a template with its facts in brackets, worded as `Wording` fills them in."""
    return _FACT.sub(_show_fact, template)


def _show_fact(fact: re.Match[str]) -> str:
    shown = f"\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}{fact['name']}\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK}"
    wording = fact["wording"]
    if not wording:
        return shown
    return f"a {shown}" if wording == "a" else f"{shown} {wording}s"


def reference_page() -> str:
    """Return the page as Markdown."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Error codes"
    yield ""
    yield f"Generated from the catalogue by `make docs`. Words in {_show('{brackets}')} stand for what was found."
    for prefix, title in SECTIONS.items():
        codes = [code for code in CATALOGUE if code.startswith(prefix)]
        if not codes:
            continue
        yield ""
        yield f"## {prefix}: {title}"
        for code in codes:
            entry = CATALOGUE[code]
            yield ""
            yield f"**{code}** {_show(entry.message)}"
            for name, text in (("Detail", entry.detail), ("Hint", entry.hint)):
                if text and text != "{hint}":
                    yield f"<br>{name}: {_show(text)}"


if __name__ == "__main__":
    print(reference_page(), end="")
