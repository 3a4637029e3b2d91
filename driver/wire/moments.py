"""Moments on the wire: RFC 3339, UTC, `Z`, milliseconds on what we write."""

import re
from datetime import UTC, datetime

_MOMENT = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9}))?Z")


class BadMoment(ValueError):
    """Text that is no moment in UTC."""


def write(moment: datetime) -> str:
    """Cut to the millisecond, never rounded up: a moment written is not later than the moment meant."""
    if moment.tzinfo is None:
        raise ValueError("a moment needs a time zone")
    text = moment.astimezone(UTC).isoformat(timespec="milliseconds")
    return text.removesuffix("+00:00") + "Z"


def read(text: str) -> datetime:
    """
    Read a moment in UTC; digits behind the microsecond are dropped.

    :raises BadMoment: for another zone, another form or a date that does not exist
    """
    match = _MOMENT.fullmatch(text)
    if match is None:
        raise BadMoment("not a moment like 2026-11-30T14:31:07.123Z")
    try:
        whole = datetime.fromisoformat(match[1])
    except ValueError:
        raise BadMoment("no such date or time") from None
    return whole.replace(microsecond=int((match[2] or "0").ljust(9, "0")[:6]), tzinfo=UTC)
