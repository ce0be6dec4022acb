"""Write the reference page of error codes: `python -m whorl.diagnostics.reference`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from whorl.diagnostics.catalogue import CATALOGUE, SECTIONS


def _show(template: str) -> str:
    return re.sub(r"\{(\w+)\}", r"‹\1›", template)


def reference_page() -> str:
    """Return the page as Markdown."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Error codes"
    yield ""
    yield "Generated from the catalogue by `make docs`. Words in ‹brackets› stand for what was found."
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
