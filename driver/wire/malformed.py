"""Why a log is refused, and the caps it is refused by."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Caps of a log, each checked before anything is done per column."""

    bytes: int = 256 * 2**20
    line_bytes: int = 64 * 2**10
    columns: int = 512
    rows: int = 2_000_000  # blank lines count too: they cost as much to look at


LIMITS = Limits()

TOO_LARGE = "the file is too large"
LONG_LINE = "the line is too long"
MANY_COLUMNS = "too many columns"
MANY_ROWS = "too many rows"

NO_HEADER = "there is no header"
NO_TIME = "the header has no column t"
REPEATED_COLUMN = "two columns have the same name"
BAD_COLUMN = "a column name has quotes or control characters"
NO_ROWS = "there are no rows"

NOT_UTF8 = "not UTF-8"
NUL = "a NUL byte before the last line end"
LONE_CR = "a CR that no LF follows: line ends are LF or CRLF"

FEW_CELLS = "fewer cells than the header has columns"
MANY_CELLS = "more cells than the header has columns"
NOT_A_NUMBER = "a cell that is no number"
OVERFLOW = "a number too large for a 64-bit float"
EMPTY_TIME = "a row without t"
TIME_GOES_BACK = "t goes back"


class Malformed(ValueError):
    """A log that cannot be read: `reason` is one of the sentences above, `line` counts from 1."""

    def __init__(self, reason: str, *, line: int | None = None, column: str | None = None) -> None:
        place = [f"line {line}"] if line is not None else []
        place += [f"column {column[:80]!r}"] if column is not None else []
        super().__init__(f"{', '.join(place)}: {reason}" if place else reason)
        self.reason, self.line, self.column = reason, line, column
