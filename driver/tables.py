"""Reading a TOML table so that nothing in it goes unread: what nobody asked for is refused."""

import difflib
import math
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from driver.exits import DriverError, Exit

T = TypeVar("T")
_REQUIRED: Any = object()


class ConfigError(DriverError):
    """The box config says something that cannot be meant; the sentence names the key."""

    exit = Exit.CONFIG


class Table:
    """
    One table of the config. Each `take` names a key that may be there; `done` refuses all others.

    :raises ConfigError: from every method, naming the key by its full path
    """

    def __init__(self, where: str, values: object) -> None:
        if not isinstance(values, Mapping):
            raise ConfigError(f"{where} must be a table")
        self.where = where
        self._left = dict(values)
        self._known: list[str] = []

    def key(self, name: str) -> str:
        return f"{self.where}.{name}" if self.where else name

    def take(self, name: str, default: Any = _REQUIRED) -> Any:
        self._known.append(name)
        value = self._left.pop(name, default)
        if value is _REQUIRED:
            raise ConfigError(f"{self.key(name)} is missing")
        return value

    def names(self) -> tuple[str, ...]:
        return tuple(self._left)

    def done(self) -> None:
        for name in self._left:
            raise ConfigError(unknown(self.key(name), name, self._known))

    def table(self, name: str) -> "Table":
        return Table(self.key(name), self.take(name, {}))

    def tables(self, name: str) -> dict[str, "Table"]:
        """A table whose keys are free names, each with a table."""
        found = Table(self.key(name), self.take(name, {}))
        return {each: Table(found.key(each), found.take(each)) for each in found.names()}

    def text(self, name: str, default: str = _REQUIRED) -> str:
        return self._typed(name, default, str, "text in quotes")

    def flag(self, name: str, default: bool = _REQUIRED) -> bool:
        return self._typed(name, default, bool, "true or false")

    def choice(self, name: str, allowed: tuple[str, ...], default: str = _REQUIRED) -> str:
        value = self.text(name, default)
        if value not in allowed:
            raise ConfigError(f"{self.key(name)} is {value!r}; it must be {' or '.join(map(repr, allowed))}")
        return value

    def positive(self, name: str, default: float = _REQUIRED) -> float:
        value = number(self.key(name), self.take(name, default))
        if value <= 0:
            raise ConfigError(f"{self.key(name)} must be above 0")
        return value

    def numbers(self, name: str, default: tuple[float, ...] = _REQUIRED) -> tuple[float, ...]:
        return numbers(self.key(name), self.take(name, default))

    def span(self, name: str, default: tuple[float, float] = _REQUIRED) -> tuple[float, float]:
        return span(self.key(name), self.take(name, default))

    def argv(self, name: str, default: tuple[str, ...] = _REQUIRED) -> tuple[str, ...]:
        """A command as a list of words. There is no shell, so a single text is refused."""
        value = self.take(name, default)
        if isinstance(value, str):
            raise ConfigError(
                f'{self.key(name)} must be a list of words, ["program", "argument"]: no shell reads it'
            )
        if not isinstance(value, list | tuple) or not all(isinstance(word, str) and word for word in value):
            raise ConfigError(f"{self.key(name)} must be a list of texts, none of them empty")
        return tuple(value)

    def texts(self, name: str, default: tuple[str, ...] = _REQUIRED) -> tuple[str, ...]:
        value = self.take(name, default)
        if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
            raise ConfigError(f"{self.key(name)} must be a list of texts")
        return tuple(value)

    def _typed(self, name: str, default: T, kind: type[T], said: str) -> T:
        value = self.take(name, default)
        if not isinstance(value, kind):
            raise ConfigError(f"{self.key(name)} must be {said}")
        return value


def unknown(path: str, name: str, known: Iterable[str]) -> str:
    """Say that nobody knows the key, and which one was probably meant."""
    near = difflib.get_close_matches(name, list(known), n=1)
    meant = f"; did you mean {near[0]!r}?" if near else ""
    return f"{path} is not a key this driver knows{meant}"


def number(path: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ConfigError(f"{path} must be a finite number")
    return float(value)


def numbers(path: str, value: object) -> tuple[float, ...]:
    if not isinstance(value, list | tuple):
        raise ConfigError(f"{path} must be a list of numbers")
    return tuple(number(path, item) for item in value)


def span(path: str, value: object) -> tuple[float, float]:
    found = numbers(path, value)
    if len(found) != 2 or found[0] > found[1]:
        raise ConfigError(f"{path} must be [lowest, highest]")
    return found[0], found[1]
