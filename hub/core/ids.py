"""Ids that sort by the time they were made: a prefix, the milliseconds, and what cannot be guessed."""

import secrets
import threading
import time
from functools import partial

from django.db import models

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32, lower case
_TIME_CHARS, _RANDOM_CHARS = 10, 12
_RANDOM_BITS = 5 * _RANDOM_CHARS

_lock = threading.Lock()
_last = (0, 0)


def new_id(prefix: str) -> str:
    """
    Make an id such as `trl_01jd8x4k2m7q9rzt0v3w5y` that is greater than any made here before it.

    Two of the same millisecond keep their order, so "newest first" is a sort by id.
    """
    milliseconds, random = _next()
    return f"{prefix}_{_base32(milliseconds, _TIME_CHARS)}{_base32(random, _RANDOM_CHARS)}"


def id_field(prefix: str) -> "models.CharField[str, str]":
    """Declare the primary key of a model whose ids start with this prefix."""
    return models.CharField(primary_key=True, max_length=32, default=partial(new_id, prefix), editable=False)


def _next() -> tuple[int, int]:
    global _last
    with _lock:
        _last = following(_last, milliseconds=time.time_ns() // 1_000_000)
        return _last


def following(last: tuple[int, int], *, milliseconds: int) -> tuple[int, int]:
    """The time and the random part of the id after this one, also when the clock went back."""
    if milliseconds > last[0]:
        return milliseconds, secrets.randbits(_RANDOM_BITS - 1)
    random = last[1] + 1 + secrets.randbits(_RANDOM_BITS - 12)
    if random >> _RANDOM_BITS:
        return last[0] + 1, secrets.randbits(_RANDOM_BITS - 1)
    return last[0], random


def _base32(number: int, length: int) -> str:
    return "".join(_ALPHABET[number >> (5 * place) & 31] for place in reversed(range(length)))
