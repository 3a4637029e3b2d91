import contextlib
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from driver.policy.logfile import LogFile
from driver.wire import csvlog

COLUMNS = ("t", "q:knee")


def test_rows_reach_the_file_in_the_form_that_the_hub_reads(tmp_path: Path):
    with LogFile(tmp_path / "01-floor.csv", may_wait=True) as log:
        log.open(COLUMNS)
        log.write([0.0, 0.5])
        log.write([0.02, None])

    assert (tmp_path / "01-floor.csv").read_bytes() == b"t,q:knee\n0.000000,0.500000\n0.020000,\n"
    assert csvlog.read(tmp_path / "01-floor.csv").rows == 2


def test_a_log_that_was_never_begun_leaves_no_file(tmp_path: Path):
    with LogFile(tmp_path / "01-floor.csv", may_wait=True):
        pass

    assert not (tmp_path / "01-floor.csv").exists()


class Stuck:
    """A disk that does nothing until it is let."""

    def __init__(self) -> None:
        self.free, self.begun = threading.Event(), threading.Event()
        self.rows: list[Sequence[float | None]] = []

    def write(self, row: Sequence[float | None]) -> None:
        self.begun.set()
        assert self.free.wait(10)
        self.rows.append(row)

    def close(self) -> None:
        pass


def test_a_stuck_disk_holds_up_no_tick_and_lost_rows_are_counted(tmp_path: Path):
    stuck = Stuck()
    with LogFile(tmp_path / "log", may_wait=False, size=3, open_sink=lambda _path, _columns: stuck) as log:
        log.open(COLUMNS)
        log.write([0.0, 0.0])
        assert stuck.begun.wait(10)
        for tick in range(1, 6):
            log.write([tick, 0.0])
        stuck.free.set()

    assert log.dropped == 2
    assert "2 rows were dropped" in str(log.error)
    assert [row[0] for row in stuck.rows] == [0.0, 1, 2, 3]


def test_a_file_that_cannot_be_opened_is_said_to_the_loop(tmp_path: Path):
    with LogFile(tmp_path / "nowhere" / "log", may_wait=True) as log:
        log.open(COLUMNS)
        with contextlib.suppress(FileNotFoundError):  # the thread may have found out already
            log.write([0.0, 0.0])

    assert isinstance(log.error, FileNotFoundError)
    with pytest.raises(FileNotFoundError):
        log.write([0.02, 0.0])


class Full:
    def __init__(self, _path: Path, _columns: tuple[str, ...]) -> None:
        pass

    def write(self, _row: Sequence[float | None]) -> None:
        raise OSError(28, "No space left on device")

    def close(self) -> None:
        raise OSError(28, "No space left on device")


def test_a_disk_that_is_full_blocks_nobody(tmp_path: Path):
    with LogFile(tmp_path / "log", may_wait=True, size=2, open_sink=Full) as log:
        log.open(COLUMNS)
        with contextlib.suppress(OSError):
            for tick in range(1000):
                log.write([tick, 0.0])

    assert isinstance(log.error, OSError)


def test_a_log_that_is_whole_has_no_error(tmp_path: Path):
    with LogFile(tmp_path / "log", may_wait=False) as log:
        log.open(COLUMNS)
        log.write([0.0, 0.0])

    assert log.error is None


@pytest.mark.parametrize("size", [1, 10])
def test_a_log_that_a_stuck_disk_keeps_open_is_not_whole(tmp_path: Path, size: int):
    """With room in the queue for its end, and without."""
    stuck = Stuck()
    with LogFile(
        tmp_path / "log",
        may_wait=False,
        size=size,
        close_within_s=0.01,
        open_sink=lambda _path, _columns: stuck,
    ) as log:
        log.open(COLUMNS)
        log.write([0.0, 0.0])
        assert stuck.begun.wait(10)
        log.write([1.0, 0.0])

    assert "it is not closed" in str(log.error)
    stuck.free.set()


class Unclosed(Full):
    def write(self, _row: Sequence[float | None]) -> None:
        pass


def test_a_log_that_cannot_be_closed_is_not_whole(tmp_path: Path):
    with LogFile(tmp_path / "log", may_wait=True, open_sink=Unclosed) as log:
        log.open(COLUMNS)
        log.write([0.0, 0.0])

    assert "No space left" in str(log.error)
