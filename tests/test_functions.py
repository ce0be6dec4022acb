"""Functions in Python: where they come from, and what their annotations say."""

from __future__ import annotations

from pathlib import Path
from typing import Optional

import pytest

import whorl
from whorl.model.functions import FunctionTypeError, describe


def test_functions(tmp_path: Path) -> None:
    @whorl.function
    def half(x: int) -> float:
        return x / 2

    def twice(x: int) -> int:
        return 2 * x

    file = tmp_path / "functions.py"
    file.write_text("import whorl\n@whorl.function\ndef half(x: int) -> float:\n    return x / 2\n", encoding="utf-8")
    for functions in ([half], [twice, half], str(file), file):
        session = whorl.open("out(half(X)) :- item(X).", functions=functions)
        session.insert("item", [(3,)])
        assert session.commit()["out"].inserted == ((1.5,),)


def test_annotations_of_functions() -> None:
    def share(parts: list[int], whole: int) -> float | None:
        return sum(parts) / whole if whole else None

    def first(parts: list[str]) -> Optional[str]:  # noqa: UP045 - this is the older way to write it
        return parts[0] if parts else None

    session = whorl.open("out(share(P, W)) :- item(P, W).", functions=[share])
    session.insert("item", [([1, 2], 4), ([1], 0)])
    assert session.commit()["out"].inserted == ((0.75,),)
    assert describe(first).signature == "first(List)"


def test_annotations_that_are_no_columns() -> None:
    def wrong(x: int) -> int | str:
        return x

    def unknown(x: Missing) -> int:  # type: ignore[name-defined]  # noqa: F821
        return int(x)

    def broken(x: "List[int") -> int:  # type: ignore[valid-type]  # noqa: F722
        return int(x)

    with pytest.raises(FunctionTypeError, match=r"function wrong: int \| str is no column type"):
        describe(wrong)
    with pytest.raises(FunctionTypeError, match=r"List\[int.* is no column type"):
        describe(broken)
    with pytest.raises(FunctionTypeError, match="function unknown: Missing is no column type"):
        describe(unknown)
