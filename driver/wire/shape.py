"""Checks of JSON against a described shape: exact types, no unknown keys, every fault with its path."""

import math
import re
from collections.abc import Callable, Collection, Mapping
from typing import TypeAlias

from driver.wire import moments
from driver.wire.canonical import JSON

MAX_ERRORS = 50

Errors: TypeAlias = dict[str, list[str]]
Check: TypeAlias = Callable[[JSON, str, Errors], None]


def errors_in(value: JSON, check: Check) -> Errors:
    """The faults of a value, path (`stages.0.name`; `.` is the value itself) to sentences."""
    errors: Errors = {}
    check(value, "", errors)
    return errors


def add(errors: Errors, path: str, message: str) -> None:
    """Note a fault. There is an end to it: a hostile document gets no longer answer than an honest one."""
    if len(errors) < MAX_ERRORS or path in errors:
        errors.setdefault(path or ".", []).append(message)


def below(path: str, key: str | int) -> str:
    step = str(key)[:60]
    return f"{path}.{step}" if path else step


def text(*, most: int, least: int = 0, pattern: str | None = None, means: str = "") -> Check:
    """Text of a length; `pattern` must fit it all, and `means` says in words what it asks."""
    compiled = re.compile(pattern, re.ASCII) if pattern else None

    def check(value: JSON, path: str, errors: Errors) -> None:
        if not isinstance(value, str):
            add(errors, path, "must be text")
        elif not least <= len(value) <= most:
            add(errors, path, f"must have {least} to {most} characters")
        elif compiled and not compiled.fullmatch(value):
            add(errors, path, f"must be {means or pattern}")

    return check


def number(*, least: float | None = None, most: float | None = None, above: float | None = None) -> Check:
    def check(value: JSON, path: str, errors: Errors) -> None:
        if isinstance(value, bool) or not isinstance(value, int | float):
            add(errors, path, "must be a number")
        else:
            _check_range(value, path, errors, least=least, most=most, above=above)

    return check


def integer(*, least: int | None = None, most: int | None = None) -> Check:
    def check(value: JSON, path: str, errors: Errors) -> None:
        if isinstance(value, bool) or not _is_whole(value):
            add(errors, path, "must be a whole number")
        else:
            _check_range(value, path, errors, least=least, most=most)  # type: ignore[arg-type]  # is whole

    return check


def flag(value: JSON, path: str, errors: Errors) -> None:
    if not isinstance(value, bool):
        add(errors, path, "must be true or false")


def one_of(*allowed: str | int) -> Check:
    def check(value: JSON, path: str, errors: Errors) -> None:
        # A bool equals 1 and 0 in Python, and is neither here.
        if isinstance(value, bool) or not isinstance(value, str | int) or value not in allowed:
            add(errors, path, f"must be one of {', '.join(map(str, allowed))}")

    return check


def or_null(inner: Check) -> Check:
    def check(value: JSON, path: str, errors: Errors) -> None:
        if value is not None:
            inner(value, path, errors)

    return check


def nothing(value: JSON, path: str, errors: Errors) -> None:
    if value is not None:
        add(errors, path, "must be null")


def list_of(item: Check, *, most: int, least: int = 0) -> Check:
    def check(value: JSON, path: str, errors: Errors) -> None:
        if not isinstance(value, list):
            add(errors, path, "must be a list")
        elif not least <= len(value) <= most:
            add(errors, path, f"must have {least} to {most} entries")
        else:
            for place, entry in enumerate(value):
                item(entry, below(path, place), errors)

    return check


def record(fields: Mapping[str, Check], optional: Mapping[str, Check] | None = None) -> Check:
    """An object with exactly these keys; those of `optional` may be absent."""
    known = {**fields, **(optional or {})}

    def check(value: JSON, path: str, errors: Errors) -> None:
        if not isinstance(value, dict):
            add(errors, path, "must be an object")
            return
        for key in value:
            if key not in known:
                add(errors, below(path, key), "unknown key")
        for key, inner in known.items():
            if key in value:
                inner(value[key], below(path, key), errors)
            elif key in fields:
                add(errors, below(path, key), "is missing")

    return check


def table(*, key: Check, value: Check, most: int) -> Check:
    """An object with free keys."""

    def check(found: JSON, path: str, errors: Errors) -> None:
        if not isinstance(found, dict):
            add(errors, path, "must be an object")
        elif len(found) > most:
            add(errors, path, f"must have at most {most} keys")
        else:
            for name, entry in found.items():
                key(name, below(path, name), errors)
                value(entry, below(path, name), errors)

    return check


def moment(value: JSON, path: str, errors: Errors) -> None:
    if not isinstance(value, str):
        add(errors, path, "must be text")
        return
    try:
        moments.read(value)
    except moments.BadMoment as error:
        add(errors, path, str(error))


def add_repeats(names: Collection[str], path: str, errors: Errors, *, what: str) -> None:
    """Note every name that is there twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            add(errors, path, f"{what} {name[:60]!r} is there twice")
        seen.add(name)


def identifier(prefix: str) -> Check:
    return text(most=40, pattern=rf"{prefix}_[A-Za-z0-9]{{1,32}}", means=f"an id like {prefix}_…")


digest = text(most=64, pattern=r"[0-9a-f]{64}", means="a sha256 in 64 lower-case hex digits")
joint = text(
    most=100, pattern=r'[^\x00-\x20\x7f",]([^\x00-\x1f\x7f",]*[^\x00-\x20\x7f",])?', means="a joint's name"
)
stage_name = text(
    most=64, pattern=r"[A-Za-z0-9_-][A-Za-z0-9._-]*", means="letters, digits, dot, dash and underscore"
)


def _is_whole(value: JSON) -> bool:
    # 3.0 and 3 are the same canonical bytes, so both are whole.
    return isinstance(value, int) or (isinstance(value, float) and value.is_integer())


def _check_range(
    value: float,
    path: str,
    errors: Errors,
    *,
    least: float | None = None,
    most: float | None = None,
    above: float | None = None,
) -> None:
    if not math.isfinite(value):
        add(errors, path, "must be finite")
    if least is not None and value < least:
        add(errors, path, f"must be at least {least}")
    if above is not None and value <= above:
        add(errors, path, f"must be above {above}")
    if most is not None and value > most:
        add(errors, path, f"must be at most {most}")
