from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.wire import moments
from driver.wire.moments import BadMoment


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_moment_reads_back_to_its_millisecond(moment: datetime) -> None:
    read = moments.read(moments.write(moment))

    assert timedelta(0) <= moment - read < timedelta(milliseconds=1)


def test_a_moment_is_written_in_utc_with_milliseconds() -> None:
    berlin = timezone(timedelta(hours=1))

    assert moments.write(datetime(2026, 11, 30, 15, 31, 7, 123_999, berlin)) == "2026-11-30T14:31:07.123Z"


def test_a_moment_without_a_zone_is_not_written() -> None:
    with pytest.raises(ValueError, match="time zone"):
        moments.write(datetime(2026, 11, 30))  # noqa: DTZ001


@pytest.mark.parametrize(
    ("text", "microsecond"),
    [
        ("2026-11-30T14:31:07Z", 0),
        ("2026-11-30T14:31:07.5Z", 500_000),
        ("2026-11-30T14:31:07.123456789Z", 123_456),
    ],
)
def test_what_others_write_is_read(text: str, microsecond: int) -> None:
    assert moments.read(text) == datetime(2026, 11, 30, 14, 31, 7, microsecond, UTC)


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-30T14:31:07+00:00",
        "2026-11-30T14:31:07.123",
        "2026-11-30 14:31:07Z",
        "2026-11-30t14:31:07z",
        "2026-02-30T14:31:07Z",
        "2026-11-30T24:31:07Z",
        "2026-11-30T14:31:60Z",
        "２026-11-30T14:31:07Z",
        "2026-11-30T14:31:07.Z",
        "2026-11-30T14:31:07Z\n",
        "",
    ],
)
def test_another_form_is_refused(text: str) -> None:
    with pytest.raises(BadMoment):
        moments.read(text)
