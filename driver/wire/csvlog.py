"""The log, CSV version 1: a strict reader that hub and box share, and the writer."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from driver.wire import cells, malformed
from driver.wire.cells import Block
from driver.wire.malformed import LIMITS, Limits, Malformed

__all__ = ["LIMITS", "Counts", "Limits", "Log", "Malformed", "Writer", "is_listed", "read", "write"]

Column = NDArray[np.float64]

_BLOCK = 256 * 2**10  # fits a core's cache, where the check is fastest
_BOM = b"\xef\xbb\xbf"
_NEAR = 8  # columns so near to an edge are cut out of each line faster than pandas finds them
_FEW = 500  # rows in which a column that is read at all has a reading
_DECIMALS = 6

_LISTED = re.compile(
    r"t|tick|g_[xyz]|w_[xyz]|quat_[wxyz]|bat_v|fall|cmd_.+|(?:q|tgt|act|dq|tau|temp):.+", re.DOTALL
)


def is_listed(name: str) -> bool:
    """Whether version 1 gives a column of this name a meaning."""
    return _LISTED.fullmatch(name) is not None


@dataclass(frozen=True, kw_only=True)
class Counts:
    """What was tolerated."""

    bom: int = 0
    crlf: int = 0
    blank_lines: int = 0
    empty_cells: int = 0
    torn_tail: int = 0
    nul_bytes: int = 0


@dataclass
class Log:
    """A log whose every cell has been checked. Columns become arrays when they are asked for."""

    columns: tuple[str, ...]
    rows: int
    dropped: Counts
    blocks: Sequence[Block] = field(repr=False)
    dups: int = 0
    _arrays: dict[str, Column] = field(default_factory=dict, repr=False)

    def array(self, name: str) -> Column:
        """The column of that name; NaN is "not measured"."""
        if name not in self._arrays:
            place = self.columns.index(name) if name in self.columns else -1
            if place < 0:
                raise KeyError(name)
            found = self._cut(place) if _is_near(place, self.columns) else self.tail([name])[name]
            found.setflags(write=False)
            self._arrays[name] = found
        return self._arrays[name]

    def tail(self, names: Sequence[str], *, start: int = 0) -> dict[str, Column]:
        """Several columns at once, from row `start` on."""
        import pandas as pd  # takes a second to load, and who only writes a log needs none of it

        places = {self.columns.index(name): name for name in names}
        if not places or start >= self.rows:
            return {name: np.empty(0) for name in names}
        first, skipped = self._block_of(start)
        frame = pd.read_csv(
            cast("BinaryIO", _Source(block.data for block in self.blocks[first:])),
            header=None,
            names=range(len(self.columns)),
            usecols=sorted(places),
            index_col=False,
            dtype=np.float64,
            na_values=[""],
            keep_default_na=False,
            engine="c",
        )
        return {name: frame[place].to_numpy()[start - skipped :] for place, name in places.items()}

    def ends(self, name: str) -> tuple[float | None, float | None]:
        """The first and the last reading of a column, which most often stand in the first and last rows."""
        place = self.columns.index(name)
        return self._reading(place, self.blocks), self._reading(place, reversed(self.blocks), last=True)

    def last(self, names: Sequence[str]) -> dict[str, float | None]:
        """The last reading of each column; it is looked for in the last rows first."""
        found: dict[str, float | None] = dict.fromkeys(names)
        for start in (max(self.rows - _FEW, 0), 0):
            missing = [name for name in names if found[name] is None]
            for name, column in self.tail(missing, start=start).items():
                readings = column[~np.isnan(column)]
                found[name] = float(readings[-1]) if readings.size else None
        return found

    def line_of(self, row: int) -> int:
        """The line of the file, counted from 1, where a row stands."""
        first, skipped = self._block_of(row)
        return self.blocks[first].lines[row - skipped]

    def _block_of(self, row: int) -> tuple[int, int]:
        """The block where a row stands, and how many rows stand before that block."""
        skipped = 0
        for number, block in enumerate(self.blocks):
            if row < skipped + block.rows:
                return number, skipped
            skipped += block.rows
        return len(self.blocks), skipped

    def _cut(self, place: int) -> Column:
        return np.concatenate([_readings(block, place, self.columns) for block in self.blocks])

    def _reading(self, place: int, blocks: Iterable[Block], *, last: bool = False) -> float | None:
        for block in blocks:
            readings = _readings(block, place, self.columns)
            readings = readings[~np.isnan(readings)]
            if readings.size:
                return float(readings[-1 if last else 0])
        return None


def read(source: Path | bytes, *, limits: Limits = LIMITS) -> Log:
    """
    Read a log and check every cell of it.

    :raises Malformed: with the line and the reason, for whatever is not CSV version 1
    """
    lines = _Lines(source, limits)
    names = _header(lines, limits)
    blocks, times = _checked(lines, names, limits)
    if not blocks:
        raise Malformed(malformed.NO_ROWS)
    log = Log(
        columns=names,
        rows=sum(block.rows for block in blocks),
        blocks=blocks,
        dropped=lines.counts(empty_cells=sum(block.empty_cells for block in blocks)),
        _arrays={"t": np.concatenate(times)} if times else {},
    )
    log.dups = _check_time(log)
    return log


def _header(lines: "_Lines", limits: Limits) -> tuple[str, ...]:
    text = lines.first_line()
    if text is None:
        cells.check_text(bytes(lines.tail.rstrip(b"\0")), line=lines.number)
        raise Malformed(malformed.NO_HEADER)
    line = lines.number
    if len(text) > limits.line_bytes:
        raise Malformed(malformed.LONG_LINE, line=line)
    cells.check_text(text, line=line)
    if text.count(b",") >= limits.columns:
        raise Malformed(malformed.MANY_COLUMNS, line=line)
    return _names(text.decode(), line)


def _names(text: str, line: int) -> tuple[str, ...]:
    names = tuple(name.strip(" \t") for name in text.split(","))
    if "t" not in names:
        raise Malformed(malformed.NO_TIME, line=line)
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise Malformed(malformed.REPEATED_COLUMN, line=line, column=name)
        if '"' in name or not _is_plain(name):
            raise Malformed(malformed.BAD_COLUMN, line=line, column=name)
        seen.add(name)
    return names


def _is_plain(name: str) -> bool:
    return not any(letter < " " or letter == "\x7f" for letter in name)


def _checked(lines: "_Lines", names: Sequence[str], limits: Limits) -> tuple[list[Block], list[Column]]:
    """The blocks of a log and, where it is cheap, their `t`: a block reads best while it is in the cache."""
    place = names.index("t")
    blocks: list[Block] = []
    times: list[Column] = []
    for first_line, data in lines.blocks():
        block = cells.prove(data, columns=len(names), first_line=first_line, limits=limits)
        if block is None:
            block = cells.read_lines(data, names=names, first_line=first_line, limits=limits)
        lines.count(block.rows, blank=block.blank_lines)
        if block.rows:
            blocks.append(block)
            if _is_near(place, names):
                times.append(_readings(block, place, names))
    return blocks, times


def _check_time(log: Log) -> int:
    """Count the rows whose `t` equals the one before; refuse a `t` that is absent or goes back."""
    t = log.array("t")
    if (absent := np.isnan(t)).any():
        raise Malformed(malformed.EMPTY_TIME, line=log.line_of(int(absent.argmax())), column="t")
    with np.errstate(over="ignore"):
        steps = np.diff(t)
    if (back := steps < 0).any():
        raise Malformed(malformed.TIME_GOES_BACK, line=log.line_of(int(back.argmax()) + 1), column="t")
    return int((steps == 0).sum())


def _is_near(place: int, names: Sequence[str]) -> bool:
    return min(place, len(names) - 1 - place) < _NEAR


def _readings(block: Block, place: int, names: Sequence[str]) -> Column:
    return np.array([float(text or b"nan") for text in _column(block, place, len(names))], np.float64)


def _column(block: Block, place: int, columns: int) -> list[bytes]:
    """One cell of each line, found from the nearer edge without a copy of the line."""
    data, behind = block.data, columns - 1 - place
    ends: list[int] = block.ends.tolist()
    starts = [0, *(end + 1 for end in ends[:-1])]
    if place < behind:
        for _ in range(place):
            starts = [data.index(b",", start) + 1 for start in starts]
        return [data[start : data.index(b",", start)] for start in starts]
    for _ in range(behind):
        ends = [data.rindex(b",", 0, end) for end in ends]
    lefts = [max(data.rfind(b",", start, end) + 1, start) for start, end in zip(starts, ends, strict=True)]
    return [data[left:end] for left, end in zip(lefts, ends, strict=True)]


class _Lines:
    """A file cut into blocks of whole lines, with what is tolerated around them taken off."""

    def __init__(self, source: Path | bytes, limits: Limits) -> None:
        self.limits = limits
        self.number = 1
        self.bom = self.crlf = self.blank_lines = 0
        self.tail = bytearray()
        self._whole = self._cut(_chunks(source, limits))
        self._waiting = b""

    def first_line(self) -> bytes | None:
        """The first line that is not blank, without its line end; `number` is its number."""
        for block in self._whole:
            start = self._behind_bom(block)
            while (end := block.find(b"\n", start)) >= 0:
                text = self._without_cr(block[start : end + 1])[:-1]
                if text.strip(b" \t"):
                    self._waiting = block[end + 1 :]
                    return text
                self.count(0, blank=1)
                start = end + 1
        return None

    def _behind_bom(self, block: bytes) -> int:
        self.bom = int(self.number == 1 and block.startswith(_BOM))
        return len(_BOM) * self.bom

    def blocks(self) -> Iterator[tuple[int, bytes]]:
        """The blocks behind the header, each with its first line's number; the caller counts their lines."""
        self.number += 1
        for block in chain([self._waiting], self._whole):
            if block:
                yield self.number, self._without_cr(block)

    def counts(self, *, empty_cells: int) -> Counts:
        return Counts(
            bom=self.bom,
            crlf=self.crlf,
            blank_lines=self.blank_lines,
            empty_cells=empty_cells,
            torn_tail=int(bool(self.tail.strip(b"\0"))),
            nul_bytes=self.tail.count(b"\0"),
        )

    def count(self, rows: int, *, blank: int) -> None:
        """Note the lines of a block that has been looked at."""
        self.blank_lines += blank
        self.number += rows + blank
        # The header and the number of the next line are no rows.
        if self.number - 2 > self.limits.rows:
            raise Malformed(malformed.MANY_ROWS, line=self.limits.rows + 2)

    def _without_cr(self, block: bytes) -> bytes:
        if b"\r" not in block:
            return block
        self.crlf += block.count(b"\r\n")
        return block.replace(b"\r\n", b"\n")

    def _cut(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            end = chunk.rfind(b"\n") + 1
            if end:
                block = b"".join((self.tail, memoryview(chunk)[:end]))
                self.tail = bytearray(memoryview(chunk)[end:])
                yield block
            else:
                self.tail += chunk
                self._check_tail()
        self._check_tail()

    def _check_tail(self) -> None:
        """Refuse a line that is too long before it has ended. A tail of NULs may be as long as it likes."""
        start = self.tail[: self.limits.line_bytes + 2]
        if len(start) > self.limits.line_bytes + 1 and start[-1]:
            raise Malformed(malformed.LONG_LINE, line=self.number)


def _chunks(source: Path | bytes, limits: Limits) -> Iterator[bytes]:
    if isinstance(source, bytes):
        if len(source) > limits.bytes:
            raise Malformed(malformed.TOO_LARGE)
        for start in range(0, len(source), _BLOCK):
            yield source[start : start + _BLOCK]
        return
    size = 0
    with source.open("rb", buffering=0) as file:
        while chunk := file.read(_BLOCK):
            size += len(chunk)
            if size > limits.bytes:
                raise Malformed(malformed.TOO_LARGE)
            yield chunk


class _Source:
    """Blocks as pandas reads them: one block a call, whatever it asks for."""

    def __init__(self, blocks: Iterable[bytes]) -> None:
        self._blocks = iter(blocks)

    def read(self, size: int = -1) -> bytes:
        return next(self._blocks, b"")

    def __iter__(self) -> Iterator[bytes]:
        return self._blocks


class Writer:
    """Writes a log row by row, so that a run cut short leaves all rows but the last one whole."""

    def __init__(self, stream: BinaryIO, columns: Sequence[str]) -> None:
        self.columns = _names(",".join(columns), line=1)
        if self.columns != tuple(columns):
            raise ValueError("a column name has a comma or blanks around it")
        self.stream = stream
        stream.write(",".join(columns).encode() + b"\n")

    def write(self, row: Sequence[float | None] | Mapping[str, float | None]) -> None:
        """Write one row, in the columns' order or by name; None and NaN are "not measured"."""
        values = [row.get(name) for name in self.columns] if isinstance(row, Mapping) else row
        if len(values) != len(self.columns):
            raise ValueError(f"a row has {len(self.columns)} cells, not {len(values)}")
        self.stream.write(",".join(map(_written, values)).encode() + b"\n")


def write(stream: BinaryIO, columns: Sequence[str], rows: Iterable[Sequence[float | None]]) -> None:
    """Write a whole log."""
    writer = Writer(stream, columns)
    for row in rows:
        writer.write(row)


def _written(value: float | None) -> str:
    if value is None or value != value:
        return ""
    if isinstance(value, int | np.integer):
        return str(int(value))
    if np.isinf(value):
        raise ValueError("infinity is no reading")
    return f"{value:.{_DECIMALS}f}"
