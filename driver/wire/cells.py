"""
Whether every cell of a block of lines is a number, in two ways that must agree.

`prove` looks at a block as bits, 64 bytes a word, and is as fast as reading it; it knows only the common
spellings and never says that a block is wrong. `read_lines` goes line by line, knows every spelling that is
tolerated, and names the first line that is not.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from driver.wire import malformed
from driver.wire.malformed import Limits, Malformed

Bits = NDArray[np.uint64]

_NUMBER = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_SAFE_DIGITS = 300  # no number of so many digits and no exponent overflows
_NOT_MEASURED = {b"", b"nan", b"NaN"}

_ALL = np.uint64(2**64 - 1)
_ONE, _TWO, _LAST = np.uint64(1), np.uint64(2), np.uint64(63)
_WORD = 64


@dataclass(frozen=True, eq=False)
class Block:
    """Checked lines in the plainest spelling: no blanks, no `nan`, LF, every line `columns` cells."""

    data: bytes
    ends: NDArray[np.int64]  # where the lines end
    lines: Sequence[int]  # their numbers in the file
    empty_cells: int = 0
    blank_lines: int = 0

    @property
    def rows(self) -> int:
        return len(self.lines)


def prove(data: bytes, *, columns: int, first_line: int, limits: Limits) -> Block | None:
    """Give the block when each line has its cells and each cell is a plain number or empty, else nothing."""
    spare = -len(data) % _WORD
    text = np.frombuffer(data + b"\n" * spare, np.uint8)
    ended = text == ord("\n")
    ends = np.flatnonzero(ended[: len(data)])
    if np.diff(ends, prepend=-1).max() > limits.line_bytes + 1:
        return None
    breaks = _bits(ended) | _bits(text == ord(","))
    starts = _after(breaks)
    starts[0] |= _ONE
    if not _are_numbers(text, breaks, starts) or not _has_cells(breaks, ends, columns):
        return None
    empty = int(np.bitwise_count(breaks & starts).sum()) - spare
    # In a file of one column, a blank line and an empty cell are the same bytes.
    return (
        None
        if columns == 1 and empty
        else Block(data, ends, range(first_line, first_line + len(ends)), empty)
    )


def _are_numbers(text: NDArray[np.uint8], breaks: Bits, starts: Bits) -> bool:
    """Compare each byte with its neighbours: what stands before and behind a sign, a point, an exponent."""
    digits, point, sign = _bits(text >= ord("0")), _bits(text == ord(".")), _bits(text == ord("-"))
    known = breaks | digits | point | sign
    wrong = point & ~_after(digits)
    if text.max() > ord("9"):
        digits &= _bits(text <= ord("9"))
        exponent, plus = _bits((text | 32) == ord("e")), _bits(text == ord("+"))
        wrong |= _wrong_exponents(exponent, plus, digits, point, sign, breaks)
        known = breaks | digits | point | sign | exponent | plus
        starts = starts | _after(exponent)
        sign |= plus
    wrong |= ~known
    wrong |= sign & ~starts
    wrong |= _after(sign | point) & ~digits
    wrong |= _repeats(point, breaks)
    # A word without a break is a cell of 64 bytes and more: its value may overflow, and a carry may be lost.
    return not wrong.any() and bool(breaks.all())


def _wrong_exponents(
    exponent: Bits, plus: Bits, digits: Bits, point: Bits, minus: Bits, breaks: Bits
) -> Bits:
    behind = _after(exponent)
    wrong = exponent & ~_after(digits)
    wrong |= plus & ~behind
    wrong |= behind & ~(digits | minus | plus)
    wrong |= _repeats(exponent, breaks)
    wrong |= point & ~_added(exponent, breaks)  # a point behind the exponent
    first = (behind & digits) | _after(behind & (minus | plus))
    return wrong | (_after(_after(first) & digits) & digits)  # three digits and more, which may overflow


def _repeats(marks: Bits, breaks: Bits) -> Bits:
    """
    The second and later marks of a cell.

    A cell is a run of ones in `~breaks`. Adding a mark to its run clears the run from there on and carries
    out at its end; adding another one sets that bit again.
    """
    return _added(marks, breaks) & marks


def _added(marks: Bits, breaks: Bits) -> Bits:
    runs = ~breaks
    total = runs + marks
    total[1:] += total[:-1] < runs[:-1]
    return total


def _has_cells(breaks: Bits, ends: NDArray[np.int64], columns: int) -> bool:
    """Count the breaks up to each line's end: line n ends at break n × columns."""
    counts = np.bitwise_count(breaks)
    before = np.cumsum(counts, dtype=np.int64) - counts
    word = ends // _WORD
    upto = (_TWO << (ends % _WORD).astype(np.uint64)) - _ONE
    found = before[word] + np.bitwise_count(breaks[word] & upto)
    return bool((found == np.arange(1, len(ends) + 1) * columns).all())


def _bits(mask: NDArray[np.bool_]) -> Bits:
    return np.packbits(mask, bitorder="little").view("<u8")


def _after(bits: Bits) -> Bits:
    """The places right behind the marked ones."""
    moved = bits << _ONE
    moved[1:] |= bits[:-1] >> _LAST
    return moved


def read_lines(data: bytes, *, names: Sequence[str], first_line: int, limits: Limits) -> Block:
    """
    Check a block line by line and put it into the plainest spelling.

    :raises Malformed: for the first line that is wrong
    """
    kept: list[bytes] = []
    numbers: list[int] = []
    empty = blank = 0
    for line, text in enumerate(data.split(b"\n")[:-1], start=first_line):
        if len(text) > limits.line_bytes:
            raise Malformed(malformed.LONG_LINE, line=line)
        if not text.strip(b" \t"):
            blank += 1
            continue
        cells = _cells(text, names=names, line=line)
        empty += cells.count(b"")
        kept.append(b",".join(cells))
        numbers.append(line)
    plain = b"".join(row + b"\n" for row in kept)
    ends = np.flatnonzero(np.frombuffer(plain, np.uint8) == ord("\n"))
    return Block(plain, ends, numbers, empty, blank)


def check_text(text: bytes, *, line: int) -> None:
    """:raises Malformed: for what may stand in no line, whatever its cells are"""
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        raise Malformed(malformed.NOT_UTF8, line=line) from None
    if b"\0" in text:
        raise Malformed(malformed.NUL, line=line)
    if b"\r" in text:
        raise Malformed(malformed.LONE_CR, line=line)


def _cells(text: bytes, *, names: Sequence[str], line: int) -> list[bytes]:
    check_text(text, line=line)
    cells = text.split(b",")
    if b" " in text or b"\t" in text:
        cells = [cell.strip(b" \t") for cell in cells]
    if len(cells) != len(names):
        reason = malformed.FEW_CELLS if len(cells) < len(names) else malformed.MANY_CELLS
        raise Malformed(reason, line=line)
    if not all(map(_NUMBER.fullmatch, cells)):
        cells = [
            b"" if cell in _NOT_MEASURED else _number(cell, name, line)
            for cell, name in zip(cells, names, strict=True)
        ]
    if b"e" in text or b"E" in text or max(map(len, cells)) > _SAFE_DIGITS:
        _check_size(cells, names, line)
    return cells


def _number(cell: bytes, name: str, line: int) -> bytes:
    if cell in _NOT_MEASURED:
        return b""
    if not _NUMBER.fullmatch(cell):
        raise Malformed(malformed.NOT_A_NUMBER, line=line, column=name)
    return cell


def _check_size(cells: Sequence[bytes], names: Sequence[str], line: int) -> None:
    for cell, name in zip(cells, names, strict=True):
        if cell and math.isinf(float(cell)):
            raise Malformed(malformed.OVERFLOW, line=line, column=name)
