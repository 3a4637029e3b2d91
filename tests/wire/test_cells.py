"""The quick proof and the slow reading must agree, and the quick one may only be quick, never laxer."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from driver.wire import cells
from driver.wire.cells import Block
from driver.wire.malformed import LIMITS, Malformed

NAMES = ("t", "q:l", "q:r")

alphabet = st.sampled_from([b"0", b"17", b"-", b".", b",", b"\n", b"e", b"E", b"+", b"12345678" * 8])
plain = st.sampled_from(
    [b"", b"0", b"-1", b"0.125", b"-12.5", b"1e5", b"-1.5E-07", b"3e+2", b"123456789.123456"]
)
lines = st.lists(st.tuples(plain, plain, plain).map(b",".join), min_size=1, max_size=60)
mangled = st.tuples(lines, st.integers(0, 10_000), alphabet).map(
    lambda drawn: insert(b"\n".join(drawn[0]) + b"\n", at=drawn[1], piece=drawn[2])
)


def insert(data: bytes, *, at: int, piece: bytes) -> bytes:
    at %= len(data)
    return data[:at] + piece + data[at:]


def slow(data: bytes, names: tuple[str, ...] = NAMES) -> Block | None:
    try:
        return cells.read_lines(data, names=names, first_line=2, limits=LIMITS)
    except Malformed:
        return None


def quick(data: bytes, columns: int = 3) -> Block | None:
    return cells.prove(data, columns=columns, first_line=2, limits=LIMITS)


@settings(max_examples=500)
@given(st.lists(alphabet, max_size=80).map(lambda drawn: b"".join(drawn) + b"\n") | mangled)
@example(b"1.2.3,1,2\n")
@example(b"1" * 64 + b".5.5,1,2\n")
@example(b"0.1,1,2\n" * 7 + b"1.123456,1234567890.1.1,2\n")
@example(b"1e5.5,1,2\n")
@example(b"1e5e5,1,2\n")
@example(b".5,1,2\n")
@example(b"-,1,2\n")
@example(b"1,2\n1,2,3,4\n")
@example(b"1,2,3\n\n")
def test_what_is_proved_is_what_would_have_been_read(data: bytes) -> None:
    proved = quick(data)

    if proved is not None:
        assert facts(proved) == facts(slow(data))


def facts(block: Block | None) -> dict[str, object] | None:
    if block is None:
        return None
    arrays = {"ends": block.ends.tolist(), "lines": list(block.lines)}
    return {"data": block.data, "empty": block.empty_cells, "blank": block.blank_lines, **arrays}


@given(lines)
def test_plain_numbers_are_proved(drawn: list[bytes]) -> None:
    data = b"\n".join(drawn) + b"\n"

    assert facts(quick(data)) == facts(slow(data)) is not None


def quick_one(data: bytes) -> Block | None:
    return quick(data, columns=1)


@given(
    st.integers(0, 130),
    st.sampled_from([b"1.2.3", b"1e2e3", b"1e2.3", b"1-2", b"1.-2", b"e5", b"1e", b"1+2", b"1:2"]),
)
def test_a_wrong_cell_is_seen_wherever_it_lies_among_the_words(before: int, cell: bytes) -> None:
    rows = b"1,2,3\n" * (before // 6) + b"1" * (before % 6 + 1) + b",2,3\n"

    assert quick(rows + b"1," + cell + b",3\n1,2,3\n") is None
    assert quick(rows + b"1,2,3\n1,2,3\n") is not None


@pytest.mark.parametrize("digits", range(40, 140))
def test_a_cell_of_any_length_is_proved_or_left_to_the_slow_reading(digits: int) -> None:
    cell = b"1" * digits
    for text in (cell + b".5", b"0." + cell, cell + b".1.1", b"1.1" + cell + b".1"):
        data = b"1," + text + b",3\n"
        assert facts(quick(data)) in (None, facts(slow(data)))


@pytest.mark.parametrize("exponent", [b"e9", b"e99", b"e-99", b"E+99"])
def test_an_exponent_of_two_digits_is_proved(exponent: bytes) -> None:
    assert quick(b"1,1.5" + exponent + b",2\n") is not None


@pytest.mark.parametrize("exponent", [b"e100", b"e-100", b"E+400", b"e0001"])
def test_an_exponent_of_three_digits_is_left_to_the_slow_reading(exponent: bytes) -> None:
    assert quick(b"1,1.5" + exponent + b",2\n") is None


def test_a_single_column_with_an_empty_line_is_left_to_the_slow_reading() -> None:
    assert quick_one(b"1\n\n2\n") is None
    assert quick_one(b"1\n2\n") is not None
