"""Canonical JSON (RFC 8785) out, strict JSON in: what is signed has one spelling only."""

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn, TypeAlias

import rfc8785

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"

MAX_NUMBER = 2**53 - 1
MAX_DEPTH = 32

# Possessive, and the closing quote optional: an unclosed string is read once and not again from every quote.
_STRINGS = re.compile(r'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_BRACKETS = re.compile(r"[\[\]{}]")


class NotStrict(ValueError):
    """Text or a value that has no single canonical spelling; the message says what it met."""


def parse(raw: bytes) -> JSON:
    """
    Read JSON that another program can only have meant in one way.

    :raises NotStrict: for everything else, also for what Python's own reader would let through
    """
    text = _text(raw)
    _check_depth(text)
    try:
        value: JSON = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise NotStrict(f"not JSON: {error.msg} at character {error.pos}") from None
    except RecursionError:
        raise NotStrict(_TOO_DEEP) from None
    if "\\u" in text:
        _check_strings(value)
    return value


def object_of(raw: bytes) -> dict[str, JSON]:
    """Read strict JSON whose top is an object."""
    value = parse(raw)
    if not isinstance(value, dict):
        raise NotStrict("not a JSON object")
    return value


def dumps(value: object) -> bytes:
    """
    Write the canonical form, which `parse` reads back to an equal value.

    :raises NotStrict: for a value that `parse` would refuse
    """
    _check_value(value, depth=0)
    try:
        return rfc8785.dumps(value)  # type: ignore[arg-type]  # checked just above
    except (ValueError, RecursionError) as error:
        raise NotStrict(str(error)) from None


def sha256_hex(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


_TOO_DEEP = f"nested deeper than {MAX_DEPTH}"


def _text(raw: bytes) -> str:
    if raw.startswith(b"\xef\xbb\xbf"):
        raise NotStrict("starts with a byte order mark")
    if b"\0" in raw:
        raise NotStrict("has a NUL")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotStrict(f"not UTF-8 at byte {error.start}") from None


def _check_depth(text: str) -> None:
    """Count brackets outside strings, so that the depth is known before anything recurses."""
    depth = 0
    for bracket in _BRACKETS.findall(_STRINGS.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        if depth > MAX_DEPTH:
            raise NotStrict(_TOO_DEEP)


def _object(pairs: Iterable[tuple[str, JSON]]) -> dict[str, JSON]:
    found: dict[str, JSON] = {}
    for key, value in pairs:
        if key in found:
            raise NotStrict(f"key {key[:40]!r} is there twice")
        found[key] = value
    return found


def _integer(digits: str) -> int:
    # The length comes first: Python's own int() is quadratic in it.
    if len(digits) > 17 or abs(int(digits)) > MAX_NUMBER:
        raise NotStrict("an integer beyond 2^53-1")
    return int(digits)


def _float(digits: str) -> float:
    value = float(digits)
    if not _has_one_spelling(value):
        raise NotStrict("a number beyond 2^53-1")
    return value


def _constant(name: str) -> NoReturn:
    raise NotStrict(f"{name} is not JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_constant
)


def _has_one_spelling(value: float) -> bool:
    # A float of 2^53 or more is written as an integer that `parse` would refuse.
    return math.isfinite(value) and abs(value) <= MAX_NUMBER


def _check_strings(value: JSON) -> None:
    if isinstance(value, str):
        _check_string(value)
    elif isinstance(value, list):
        for item in value:
            _check_strings(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_string(key)
            _check_strings(item)


def _check_string(text: str) -> None:
    if "\0" in text:  # PostgreSQL keeps none in text, so no statement may carry one
        raise NotStrict("has a NUL")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise NotStrict("has half of a surrogate pair") from None


def _check_value(value: object, *, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise NotStrict(_TOO_DEEP)
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, str):
        _check_string(value)
    elif isinstance(value, int | float):
        if not _has_one_spelling(value):
            raise NotStrict("a number beyond 2^53-1, or none")
    else:
        _check_items(value, depth=depth)


def _check_items(value: object, *, depth: int) -> None:
    items: Iterable[Any]
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise NotStrict(f"a key that is no text: {key!r:.40}")
            _check_string(key)
        items = value.values()
    elif isinstance(value, list | tuple):
        items = value
    else:
        raise NotStrict(f"{type(value).__name__} has no JSON form")
    for item in items:
        _check_value(item, depth=depth + 1)
