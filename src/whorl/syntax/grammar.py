"""The grammar in use: text in, lark's tree out.

To build the parser's tables takes longer than to check a small program. So they are kept beside the compiled modules,
in `__pycache__`, with a digest of the grammar, of lark's version and of themselves in front. Where they are missing,
old or damaged, or where nothing can be written, they are built anew.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib.util import cache_from_source
from io import BytesIO
from pathlib import Path

import lark
from lark import Lark, TextSlice, Token, Tree
from lark.exceptions import UnexpectedInput

_GRAMMAR = Path(__file__).with_name("datalog.lark")


@cache
def _parser() -> Lark:
    grammar = _GRAMMAR.read_bytes()
    kept = Path(cache_from_source(str(_GRAMMAR))).with_suffix(".tables")
    tables = _read_tables(kept, grammar)
    if tables is not None:
        return Lark.load(BytesIO(tables))
    parser = Lark(grammar.decode(), parser="lalr", propagate_positions=True, maybe_placeholders=True)
    if not sys.dont_write_bytecode:
        _keep_tables(kept, grammar, parser)
    return parser


def _digest(grammar: bytes, tables: bytes) -> bytes:
    return sha256(b"\0".join((lark.__version__.encode(), grammar, tables))).digest()


def _read_tables(path: Path, grammar: bytes) -> bytes | None:
    try:
        content = path.read_bytes()
    except OSError:
        return None
    size = sha256().digest_size
    digest, tables = content[:size], content[size:]
    return tables if digest == _digest(grammar, tables) else None


def _keep_tables(path: Path, grammar: bytes, parser: Lark) -> None:
    """Write the tables under another name first: whoever reads sees all of them or none."""
    tables = BytesIO()
    parser.save(tables)
    partial = path.with_suffix(f".{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(_digest(grammar, tables.getvalue()) + tables.getvalue())
        partial.replace(path)
    except OSError:
        with suppress(OSError):
            partial.unlink()


def parse_tree(text: str, start: int = 0, stop: int | None = None) -> Tree[Token]:
    """Parse a text, or a slice of it; positions count from the start of the whole text."""
    return _parser().parse(TextSlice(text, start, len(text) if stop is None else stop))


def parses(text: str) -> bool:
    """Tell whether a text has the form of statements."""
    try:
        parse_tree(text)
    except UnexpectedInput:
        return False
    return True
