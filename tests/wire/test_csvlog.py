import io
import math
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from driver.wire import csvlog, malformed
from driver.wire.csvlog import Counts, Limits, Log, Malformed
from tests import cases

SOUND = b"t,g_z,q:l\n0.00,-1,0.1\n0.02,-0.99995,0.11\n0.04,-0.9998,0.12\n"


def answer(data: bytes, **limits: int) -> tuple[str, int | None]:
    """The reason and the line of a refusal, or the number of rows."""
    try:
        log = csvlog.read(data, limits=Limits(**limits))
    except Malformed as error:
        return error.reason, error.line
    return "read", log.rows


def test_a_sound_log_is_read() -> None:
    log = csvlog.read(SOUND)

    assert log.columns == ("t", "g_z", "q:l")
    assert log.array("t").tolist() == [0.0, 0.02, 0.04]
    assert log.array("g_z").tolist() == [-1, -0.99995, -0.9998]
    assert (log.rows, log.dups, log.dropped) == (3, 0, Counts())


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("01_ok", ("read", 3)),
        ("02_truncated_mid_number", ("read", 3)),
        ("03_truncated_mid_row_then_nothing", ("read", 3)),
        ("04_no_final_newline", ("read", 2)),
        ("05_nul_block_tail", ("read", 3)),
        ("06_nul_inside_number", (malformed.NUL, 3)),
        ("07_bom", ("read", 3)),
        ("08_crlf", ("read", 3)),
        ("09_semicolon_decimal_comma", (malformed.NO_TIME, 1)),
        ("10_dup_header", (malformed.REPEATED_COLUMN, 1)),
    ],
)
def test_each_shared_case_gets_the_answer_of_its_kind(name: str, expected: tuple[str, int]) -> None:
    path = cases.path(f"logs/malformed/{name}.csv")

    assert answer(path.read_bytes()) == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", (malformed.NO_HEADER, None)),
        (b"\n\n", (malformed.NO_HEADER, None)),
        (b"t,q:l", (malformed.NO_HEADER, None)),
        (b"\xef\xbb\xbf", (malformed.NO_HEADER, None)),
        (b"\0" * 100, (malformed.NO_HEADER, None)),
        (b"t,q:l\n", (malformed.NO_ROWS, None)),
        (b"t,q:l\n\n  \n", (malformed.NO_ROWS, None)),
        (b"t,q:l\n0.00,1", (malformed.NO_ROWS, None)),
        (b"0.00,1\n0.02,1\n", (malformed.NO_TIME, 1)),
        (b"\n\ntime,q:l\n0.00,1\n", (malformed.NO_TIME, 3)),
        (b"# a comment\nt,q:l\n0.00,1\n", (malformed.NO_TIME, 1)),
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n",
            (malformed.NO_TIME, 1),
        ),
        (b'"t","q:l"\n0.00,1\n', (malformed.NO_TIME, 1)),
        (b't,"q:l"\n0.00,1\n', (malformed.BAD_COLUMN, 1)),
        (b"t,q\x1b[2J\n0.00,1\n", (malformed.BAD_COLUMN, 1)),
        (b"t,a, a\n0.00,1,2\n", (malformed.REPEATED_COLUMN, 1)),
        ("t,q:l\n0.00,1\n".encode("utf-16"), (malformed.NOT_UTF8, 1)),
        ("t,q:l\n0.00,1\n".encode("utf-16-be"), (malformed.NUL, 1)),
        (b"t,q:\xff\n0.00,1\n", (malformed.NOT_UTF8, 1)),
        (b"t,q:l\n0.00,1\n0.02,\xff\n", (malformed.NOT_UTF8, 3)),
        (b"\x1f\x8b\x08\x00\n\n", (malformed.NOT_UTF8, 1)),
        (b"t,q:l\r0.00,1\r0.02,1\r", (malformed.LONE_CR, 1)),
        (b"t,q:l\n0.00,1\r0.02,1\n", (malformed.LONE_CR, 2)),
        (b"t,q:l\n0.00,1\r\r\n", (malformed.LONE_CR, 2)),
        (b"t,q:l\n0.00,1\n\0\n", (malformed.NUL, 3)),
        (b"t,q:l\n0.00,1,\n0.02,1,\n", (malformed.MANY_CELLS, 2)),
        (b"t,q:l,\n0.00,1\n", (malformed.FEW_CELLS, 2)),
        (b"t,q:l\n0.00,1\n0.02\n", (malformed.FEW_CELLS, 3)),
        (b"t,q:l\n0.00,1\n0.02,1,2\n", (malformed.MANY_CELLS, 3)),
        (b"t,q:l,q:r\n0.00,1,2\n0.02,12\n0.04,1,2\n", (malformed.FEW_CELLS, 3)),
        (b"t,q:l\n0.00,1\nt,q:l\n0.02,1\n", (malformed.NOT_A_NUMBER, 3)),
        (b"t,q:l\n0.00,1\n# stopped\n", (malformed.FEW_CELLS, 3)),
        (b"t,q:l\n0.00,1\n0.00,1\n-0.01,1\n", (malformed.TIME_GOES_BACK, 4)),
        (b"t,q:l\n0.00,1\n\n\n0.02,1\n0.01,1\n", (malformed.TIME_GOES_BACK, 6)),
        (b"t,q:l\n0.00,1\n,1\n", (malformed.EMPTY_TIME, 3)),
        (b"t,q:l\nnan,1\n", (malformed.EMPTY_TIME, 2)),
    ],
)
def test_a_broken_log_is_refused_with_reason_and_line(data: bytes, expected: tuple[str, int | None]) -> None:
    assert answer(data) == expected


NO_NUMBERS = """
inf -inf Infinity 1_000 0x1f "0.1" +1 .5 5. . - -- 1- 1-2 -.5 -5. 1.2.3 1..2 e5 1e 1e+ 1e5.5 1e5e5 1ee5
'1' 1'5 1.e5 -e5 1e- 1e+-5 1e-+5 0.1f 1d5 NAN -nan nan0 NA null None true text ٣ １ 1:2 1/2 12h 1;2 ½ 1#2 #
"""


@pytest.mark.parametrize("cell", [*NO_NUMBERS.split(), "1 2", "1\t2", "1\v"])
def test_a_cell_that_is_no_number_is_refused_in_any_column(cell: str) -> None:
    rows = [b"0.00,1,2", b"0.02,1," + cell.encode(), b"0.04,1,2"]

    assert answer(b"t,q:l,other\n" + b"\n".join(rows) + b"\n") == (malformed.NOT_A_NUMBER, 3)
    assert answer(b"other,q:l,t\n2," + cell.encode() + b",0.00\n") == (malformed.NOT_A_NUMBER, 2)


@pytest.mark.parametrize(
    "cell",
    [
        "1e400",
        "-1e400",
        "1E+309",
        "9" * 400,
        "9" * 310 + ".5",
        "1" * 250 + "e99",
        "17976931348623159" + "0" * 292,
    ],
)
def test_a_number_beyond_a_float_is_refused_in_any_column(cell: str) -> None:
    data = f"t,q:l,other\n0.00,1,2\n0.02,1,{cell}\n".encode()

    assert answer(data) == (malformed.OVERFLOW, 3)


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("0", 0.0),
        ("-0", -0.0),
        ("007", 7.0),
        ("-12.50", -12.5),
        ("1e5", 1e5),
        ("1E5", 1e5),
        ("1e+05", 1e5),
        ("-1.5e-07", -1.5e-7),
        ("1e-400", 0.0),
        ("1e308", 1e308),
        ("1e0000005", 1e5),
        ("0" * 400, 0.0),
        ("9" * 30, 1e30),
        ("0." + "1" * 200, 1 / 9),
        ("  1.5\t", 1.5),
        ("", math.nan),
        ("   ", math.nan),
        ("nan", math.nan),
        (" NaN ", math.nan),
    ],
)
def test_every_spelling_of_a_number_is_read(cell: str, value: float) -> None:
    log = csvlog.read(f"t,{','.join(f'c{n}' for n in range(20))}\n0,{cell},{'1,' * 18}2\n".encode())

    assert np.array_equal(log.array("c0"), [value], equal_nan=True)


def test_what_is_tolerated_is_counted() -> None:
    log = csvlog.read(b"\xef\xbb\xbf\nt,q:l\r\n0.0,1\r\n \t\n0.0,\n0.1,nan\n0.2,2.5\n0.3,9\0\0")

    assert log.dropped == Counts(bom=1, crlf=2, blank_lines=2, empty_cells=2, torn_tail=1, nul_bytes=2)
    assert log.dups == 1
    assert np.array_equal(log.array("q:l"), [1, math.nan, math.nan, 2.5], equal_nan=True)


def test_a_torn_last_line_is_dropped_however_complete_it_looks() -> None:
    whole, torn = csvlog.read(SOUND), csvlog.read(SOUND + b"0.06,-0.9,0.13")

    assert torn.rows == whole.rows
    assert torn.dropped.torn_tail == 1


def test_a_tail_of_nuls_may_be_longer_than_a_line() -> None:
    log = csvlog.read(SOUND + bytes(1_000_000))

    assert (log.rows, log.dropped.nul_bytes, log.dropped.torn_tail) == (3, 1_000_000, 0)


def test_a_column_of_time_alone_is_a_log() -> None:
    log = csvlog.read(b"t\n0.0\n\n0.1\n")

    assert log.array("t").tolist() == [0.0, 0.1]
    assert log.dropped == Counts(blank_lines=1)


def test_time_may_stand_in_any_column_and_start_anywhere() -> None:
    names = [f"c{n}" for n in range(20)]
    log = csvlog.read(
        f"{','.join(names)},t,{','.join(name + 'b' for name in names)}\n".encode() + table(20, "-7.5")
    )

    assert log.array("t").tolist() == [-7.5]


def table(count: int, middle: str) -> bytes:
    return f"{'1,' * count}{middle}{',1' * count}\n".encode()


def test_a_column_that_is_not_there_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        csvlog.read(SOUND).array("q:r")


@pytest.mark.parametrize("count", [1, 2, 9, 30])
def test_a_column_reads_the_same_from_either_edge_and_from_the_middle(count: int) -> None:
    rows = [[float(10 * row + column) for column in range(count)] for row in range(5)]
    lines = "".join(f"{row},{','.join(map(str, cells))}\n" for row, cells in enumerate(rows))
    log = csvlog.read(f"t,{','.join(f'c{n}' for n in range(count))}\n{lines}".encode())

    for column in range(count):
        expected = [row[column] for row in rows]
        assert log.array(f"c{column}").tolist() == expected
        assert log.tail([f"c{column}"], start=2)[f"c{column}"].tolist() == expected[2:]
        assert log.ends(f"c{column}") == (expected[0], expected[-1])


def test_the_ends_of_a_column_are_its_first_and_last_readings() -> None:
    log = csvlog.read(b"t,temp:a,temp:b\n0,,\n1,30.5,\n2,31,\n3,nan,\n")

    assert log.ends("temp:a") == (30.5, 31.0)
    assert log.ends("temp:b") == (None, None)
    assert log.last(["temp:a", "temp:b"]) == {"temp:a": 31.0, "temp:b": None}


def test_a_last_reading_is_found_however_early_it_was_made() -> None:
    rows = [f"{n},{30.5 if n == 3 else ''}" for n in range(2_000)]
    log = csvlog.read(("t,temp:a\n" + "\n".join(rows) + "\n").encode())

    assert log.last(["temp:a"]) == {"temp:a": 30.5}


def test_a_log_of_many_blocks_reads_as_one(tmp_path: Path) -> None:
    count = 30_000
    lines = [f"{n / 100:.2f},{n},{n % 7 - 3}.5,{'' if n % 1000 == 0 else 2}" for n in range(count)]
    lines[17_000] += "\n"
    path = tmp_path / "02-floor.csv"
    path.write_text("t,tick,q:l,q:r\n" + "\n".join(lines) + "\n")

    log = csvlog.read(path)

    assert path.stat().st_size > 2 * 256 * 1024
    assert log.array("tick").tolist() == list(range(count))
    assert np.isnan(log.array("q:r")).sum() == log.dropped.empty_cells == 30
    assert log.dropped.blank_lines == 1
    assert log.tail(["q:l"], start=25_000)["q:l"].tolist() == log.array("q:l")[25_000:].tolist()
    assert (log.line_of(0), log.line_of(17_000), log.line_of(17_001)) == (2, 17_002, 17_004)


def test_the_line_of_a_fault_is_right_behind_many_blocks() -> None:
    lines = [b"%.2f,1.0" % (n / 100) for n in range(100_000)]
    lines[90_000] = b"900.00,1.0.0"

    assert answer(b"t,q:l\n" + b"\n".join(lines) + b"\n") == (malformed.NOT_A_NUMBER, 90_002)


# Caps: one above and one below each.


def test_the_cap_on_bytes(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(SOUND)

    assert answer(SOUND, bytes=len(SOUND)) == ("read", 3)
    assert answer(SOUND, bytes=len(SOUND) - 1) == (malformed.TOO_LARGE, None)
    assert csvlog.read(path, limits=Limits(bytes=len(SOUND))).rows == 3
    with pytest.raises(Malformed, match="too large"):
        csvlog.read(path, limits=Limits(bytes=len(SOUND) - 1))


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_the_cap_on_a_lines_bytes(end: bytes) -> None:
    longest = b"t," + b"c" * 10
    row = b"0," + b"1" * 10

    assert answer(longest + end + row + end, line_bytes=12) == ("read", 1)
    assert answer(longest + b"c" + end + row + end, line_bytes=12) == (malformed.LONG_LINE, 1)
    assert answer(longest + end + row + b"1" + end, line_bytes=12) == (malformed.LONG_LINE, 2)
    assert answer(longest + end + row + end + b"0," + b"1" * 20, line_bytes=12) == (malformed.LONG_LINE, 3)


def test_the_cap_on_columns() -> None:
    def log(columns: int) -> bytes:
        return (
            "t" + "".join(f",c{n}" for n in range(columns - 1)) + "\n" + "0" + ",1" * (columns - 1) + "\n"
        ).encode()

    assert answer(log(512)) == ("read", 1)
    assert answer(log(513)) == (malformed.MANY_COLUMNS, 1)


def test_the_cap_on_rows_counts_blank_lines_too() -> None:
    rows = b"".join(b"%d\n" % n for n in range(10))

    assert answer(b"t\n" + rows, rows=10) == ("read", 10)
    assert answer(b"t\n" + rows + b"10\n", rows=10) == (malformed.MANY_ROWS, 12)
    assert answer(b"t\n" + rows + b"\n", rows=10) == (malformed.MANY_ROWS, 12)


def test_the_caps_are_those_of_the_wire() -> None:
    assert Limits() == Limits(bytes=256 * 2**20, line_bytes=64 * 2**10, columns=512, rows=2_000_000)


def test_a_header_of_200_000_equal_names_is_refused_at_once() -> None:
    data = b"t" + b",c" * 200_000 + b"\n" + b"0" + b",1" * 200_000 + b"\n"
    begin = time.perf_counter()

    assert answer(data) == (malformed.LONG_LINE, 1)
    assert answer(data, line_bytes=10**6) == (malformed.MANY_COLUMNS, 1)
    assert time.perf_counter() - begin < 1


def test_a_line_that_never_ends_is_refused_before_it_is_read_to_its_end() -> None:
    assert answer(SOUND + b"1" * 10_000_000) == (malformed.LONG_LINE, 5)


# Properties.

pieces = st.sampled_from(
    [
        b"t",
        b",",
        b"\n",
        b"\r\n",
        b"0",
        b"1",
        b"-",
        b".",
        b"e",
        b"E",
        b"+",
        b"nan",
        b" ",
        b"\t",
        b"\0",
        b"\xff",
        b"q:l",
        b"\n\n",
    ]
)


@given(st.binary(max_size=200) | st.lists(pieces, max_size=60).map(b"".join))
@example(b"t\n0\n")
def test_any_bytes_are_a_log_or_malformed(data: bytes) -> None:
    for raw in (data, b"t,q:l\n" + data):
        try:
            log = csvlog.read(raw)
        except Malformed:
            continue
        assert all(len(log.array(name)) == log.rows for name in log.columns)
        assert not any(np.isinf(log.array(name)).any() for name in log.columns)


readings = st.none() | st.floats(-1e6, 1e6, allow_nan=False) | st.integers(-(2**50), 2**50)


@given(st.data())
def test_what_is_written_is_read_to_the_sixth_decimal(data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(["q:l", "tgt:l", "tick", "fall", "bat_v"]), unique=True))
    times = sorted(data.draw(st.lists(st.floats(0, 1e4), min_size=1, max_size=20)))
    rows = [[t, *(data.draw(readings) for _ in names)] for t in times]

    log = written(["t", *names], rows)

    for column, name in enumerate(["t", *names]):
        expected = [math.nan if row[column] is None else row[column] for row in rows]
        np.testing.assert_allclose(log.array(name), np.array(expected, float), rtol=0, atol=5.001e-7)


def written(columns: Sequence[str], rows: Sequence[Sequence[float | None]]) -> Log:
    stream = io.BytesIO()
    csvlog.write(stream, columns, rows)
    return csvlog.read(stream.getvalue())


@given(st.floats(allow_nan=False, allow_infinity=False))
@example(5e-324)
@example(1.7976931348623157e308)
@example(0.1)
@example(9007199254740993.0)
def test_numbers_are_read_as_python_reads_them(value: float) -> None:
    """Correctly rounded, whichever of the two ways a column is read by."""
    texts = [repr(value), f"{value:.17f}", f"{value:.25e}"]
    filler = ",1" * 20
    log = csvlog.read(
        f"t{''.join(f',a{n}' for n in range(20))},q:l{''.join(f',b{n}' for n in range(20))},last\n".encode()
        + "".join(f"{n}{filler},{text}{filler},{text}\n" for n, text in enumerate(texts)).encode()
    )

    assert log.array("q:l").tolist() == log.array("last").tolist() == [float(text) for text in texts]


# The writer.


def test_the_writer_writes_six_decimals_and_leaves_empty_what_was_not_measured() -> None:
    stream = io.BytesIO()
    writer = csvlog.Writer(stream, ["t", "tick", "q:l", "fall"])
    writer.write([0.02, 1, math.nan, True])
    writer.write({"tick": np.int64(2), "t": np.float64(0.04)})

    assert stream.getvalue() == b"t,tick,q:l,fall\n0.020000,1,,1\n0.040000,2,,\n"


@pytest.mark.parametrize(
    "columns", [["q:l"], ["t", "t"], ["t", "a,b"], ["t", "a "], ["t", 'a"'], ["t", "a\n"]]
)
def test_the_writer_takes_no_column_that_the_reader_would_refuse(columns: list[str]) -> None:
    with pytest.raises(ValueError):
        csvlog.Writer(io.BytesIO(), columns)


@pytest.mark.parametrize("row", [[0.0], [0.0, 1.0, 2.0], [0.0, math.inf]])
def test_the_writer_takes_no_row_that_the_reader_would_refuse(row: list[float]) -> None:
    writer = csvlog.Writer(io.BytesIO(), ["t", "q:l"])

    with pytest.raises(ValueError):
        writer.write(row)


def test_listed_columns_are_those_of_version_1() -> None:
    listed = [
        "t",
        "tick",
        "g_x",
        "w_z",
        "quat_w",
        "bat_v",
        "fall",
        "cmd_vx",
        "q:a",
        "tgt:a",
        "act:a",
        "temp:a",
    ]

    assert all(map(csvlog.is_listed, listed))
    assert not any(map(csvlog.is_listed, ["time", "q:", "g_w", "loop_ms", "T", "", "t ", "q"]))
