"""Exact sums of many groups at once: values come and go by whole arrays, and their order cannot matter.

A sum is kept in limbs: integers of 32 bits with room to spare, the lowest first. An integer takes two. A float is its
53 bits times a power of two, and adds to the three limbs that cover them; the limbs in use cover the exponents seen so
far, and more are added when others come. Reading a float sum rounds it once, to the nearest, as `math.fsum` does.

Cost: a few additions for each value; for each group that is read, its limbs.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from whorl.kernel.state.relation import Ints, Mask
from whorl.model.types import Type

_BITS = 32
_LOW = np.int64(0xFFFFFFFF)
_FRACTION = np.int64((1 << 52) - 1)
_HEADROOM = 4  # limbs above the lowest that a value adds to: two more of its own, and one that takes all carries


class Tally:
    """A sum, a count or an average for each group: what contributes to it comes and goes."""

    def __init__(self, kind: Type, *, average: bool) -> None:
        self._sums = FloatSums() if kind is Type.FLOAT else IntegerSums()
        self._counts = np.zeros(32, np.int64)
        self._average = average

    def reserve(self, groups: int) -> None:
        """Make room for so many groups."""
        self._sums.reserve(groups)
        self._counts = grow(self._counts, groups)

    def clear(self) -> None:
        """Let nothing contribute."""
        self._sums.clear()
        self._counts[:] = 0

    def reset(self, groups: Ints) -> None:
        """Let nothing contribute to some groups."""
        self._sums.reset(groups)
        self._counts[groups] = 0

    def add(self, groups: Ints, values: Ints, sign: int = 1) -> None:
        """Take contributions in (1) or out (-1), each to its group."""
        self._sums.add(groups, values, sign)
        np.add.at(self._counts, groups, sign)

    def filled(self, groups: Ints) -> Mask:
        """Tell which groups have a contribution."""
        return self._counts[groups] > 0

    def read(self, groups: Ints) -> tuple[Ints, Mask]:
        """Return the values of groups that have contributions, and which of them can be stored."""
        totals, fits = self._sums.read(groups)
        if not self._average:
            return totals, fits
        values = totals.view(np.float64) / self._counts[groups] + 0.0
        return values.view(np.int64), fits & np.isfinite(values)

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        return self._sums.nbytes + self._counts.nbytes


class IntegerSums:
    """Sums of integers; they may leave 64 bits and come back."""

    def __init__(self) -> None:
        self._limbs = np.zeros((32, 2), np.int64)

    @property
    def nbytes(self) -> int:
        """The memory that they take."""
        return self._limbs.nbytes

    def clear(self) -> None:
        """Let all sums be zero."""
        self._limbs[:] = 0

    def reset(self, groups: Ints) -> None:
        """Let some sums be zero."""
        self._limbs[groups] = 0

    def reserve(self, groups: int) -> None:
        """Make room for so many groups."""
        self._limbs = grow(self._limbs, groups)

    def add(self, groups: Ints, values: Ints, sign: int = 1) -> None:
        """Add values, or take them away, each to the sum of its group."""
        np.add.at(self._limbs[:, 0], groups, sign * (values & _LOW))
        np.add.at(self._limbs[:, 1], groups, sign * (values >> _BITS))

    def read(self, groups: Ints) -> tuple[Ints, Mask]:
        """Return the sums of groups, and which of them fit 64 bits."""
        limbs = _carry(self._limbs[groups])
        self._limbs[groups] = limbs
        high = limbs[:, 1]
        fits = (high >= -(1 << 31)) & (high < 1 << 31)
        return (high << _BITS) | limbs[:, 0], fits


class FloatSums:
    """Sums of floats, which come and are read as their bits."""

    def __init__(self) -> None:
        self._limbs = np.zeros((32, 0), np.int64)
        self._low = 0  # the exponent of the lowest bit, a multiple of 32

    @property
    def nbytes(self) -> int:
        """The memory that they take."""
        return self._limbs.nbytes

    def clear(self) -> None:
        """Let all sums be zero."""
        self._limbs[:] = 0

    def reset(self, groups: Ints) -> None:
        """Let some sums be zero."""
        self._limbs[groups] = 0

    def reserve(self, groups: int) -> None:
        """Make room for so many groups."""
        self._limbs = grow(self._limbs, groups)

    def add(self, groups: Ints, values: Ints, sign: int = 1) -> None:
        """Add values, or take them away, each to the sum of its group."""
        exponents = (values >> 52) & 0x7FF
        fractions = (values & _FRACTION) | np.where(exponents > 0, np.int64(1 << 52), np.int64(0))
        some = fractions != 0
        if not some.all():
            groups, values, exponents, fractions = groups[some], values[some], exponents[some], fractions[some]
        if not len(groups):
            return
        exponents = np.maximum(exponents, 1) - 1075
        self._cover(int(exponents.min()), int(exponents.max()))
        limb, shift = (exponents - self._low) >> 5, (exponents - self._low) & 31
        low, high = (fractions & _LOW) << shift, (fractions >> _BITS) << shift
        signs = np.where(values < 0, np.int64(-sign), np.int64(sign))
        flat = self._limbs.reshape(-1)
        place = groups * self._limbs.shape[1] + limb
        np.add.at(flat, place, signs * (low & _LOW))
        np.add.at(flat, place + 1, signs * ((low >> _BITS) + (high & _LOW)))
        np.add.at(flat, place + 2, signs * (high >> _BITS))

    def _cover(self, lowest: int, highest: int) -> None:
        """Have limbs for values of these exponents."""
        width = self._limbs.shape[1]
        if not width:
            self._low = lowest // _BITS * _BITS
        below = max(0, (self._low - lowest + _BITS - 1) // _BITS)
        low = self._low - below * _BITS
        needed = max(width + below, (highest - low) // _BITS + _HEADROOM)
        if needed > width:
            limbs = np.zeros((len(self._limbs), needed), np.int64)
            limbs[:, below : below + width] = self._limbs
            self._limbs, self._low = limbs, low

    def read(self, groups: Ints) -> tuple[Ints, Mask]:
        """Return the sums of groups, and which of them are finite."""
        if not self._limbs.shape[1]:
            return np.zeros(len(groups), np.int64), np.ones(len(groups), np.bool_)
        limbs = _carry(self._limbs[groups])
        self._limbs[groups] = limbs
        negative = limbs[:, -1] < 0
        limbs = np.where(negative[:, None], -limbs, limbs)
        sizes = self._round(_carry(limbs))
        values = np.where(negative, -sizes, sizes) + 0.0
        return values.view(np.int64), np.isfinite(values)

    def _round(self, limbs: Ints) -> npt.NDArray[np.float64]:
        """Return sums that are not negative as floats: the upper 64 bits, the last of which stands for all below."""
        width = limbs.shape[1]
        some = limbs != 0
        top = width - 1 - np.argmax(some[:, ::-1], axis=1)
        lines = np.arange(len(limbs))
        padded = np.concatenate((np.zeros((len(limbs), 2), np.int64), limbs), axis=1)
        first, second, third = (padded[lines, top + at].astype(np.uint64) for at in (2, 1, 0))
        bits = np.frexp(first.astype(np.float64))[1].astype(np.uint64)
        rest = np.uint64(_BITS) - bits
        mantissa = (first << (rest + np.uint64(_BITS))) | (second << rest) | (third >> bits)
        below = (third & ((np.uint64(1) << bits) - np.uint64(1))) != 0
        below |= np.argmax(some, axis=1) < top - 2
        mantissa |= below.astype(np.uint64)
        exponents = self._low + _BITS * (top - 2) + bits.astype(np.int64)
        with np.errstate(over="ignore"):
            sizes = np.ldexp(mantissa.astype(np.float64), exponents)
        return np.where(some.any(axis=1), sizes, 0.0)


def grow(array: Ints, lines: int) -> Ints:
    """Return an array with room for more lines, zeros at first."""
    if lines <= len(array):
        return array
    larger = np.zeros((max(lines, 2 * len(array)), *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


def _carry(limbs: Ints) -> Ints:
    """Bring all limbs but the last into 32 bits; the last keeps the sign."""
    for at in range(limbs.shape[1] - 1):
        limbs[:, at + 1] += limbs[:, at] >> _BITS
        limbs[:, at] &= _LOW
    return limbs
