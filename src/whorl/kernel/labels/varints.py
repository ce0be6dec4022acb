"""Numbers as bytes: seven bits in each, the lowest first, the highest bit while more follow."""

from __future__ import annotations


def varint(number: int) -> bytes:
    """Return a number as bytes."""
    out = bytearray()
    while number >= 128:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def read_varint(content: bytes, at: int) -> tuple[int, int]:
    """Return the number that begins at a byte, and where the next begins."""
    number = shift = 0
    while content[at] >= 128:
        number |= (content[at] & 127) << shift
        shift += 7
        at += 1
    return number | content[at] << shift, at + 1
