"""What kinds of jobs there are. Each app's `tasks` module registers its own; a row names its kind."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

Work = Callable[..., Any]


@dataclass(frozen=True)
class Kind:
    """A kind of job: the function, called with the row's args and `at`; and how often it comes by itself."""

    name: str
    work: Work
    every: timedelta | None = None


_KINDS: dict[str, Kind] = {}


def job(name: str, *, every: timedelta | None = None) -> Callable[[Work], Work]:
    """Register a function as a kind of job. It may run twice, so it must bear that."""

    def register(work: Work) -> Work:
        if name in _KINDS and _KINDS[name].work.__module__ != work.__module__:
            raise ValueError(f"two apps register the job {name}")
        _KINDS[name] = Kind(name, work, every)
        return work

    return register


def kind(name: str) -> Kind:
    return _KINDS[name]


def is_known(name: str) -> bool:
    return name in _KINDS


def periodic() -> list[tuple[str, timedelta]]:
    return [(kind.name, kind.every) for kind in _KINDS.values() if kind.every is not None]
