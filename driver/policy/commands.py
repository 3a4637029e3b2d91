"""Where the policy's velocity command comes from, and what happens when it stops coming."""

import ipaddress
import json
import math
import socket
from typing import Protocol

import numpy as np

from driver.bodies.base import Array
from driver.policy.order import Limits, StageOrder

ZERO_AFTER_S = 0.2
STOP_AFTER_S = 1.0
MAX_PACKET = 512
MAX_PACKETS_A_TICK = 100


class NoSource(Exception):
    """The command cannot come from there."""


class Source(Protocol):
    """A stream of commands (vx, vy, wz), on the stage's own clock."""

    def begin(self, now: float) -> None:
        """The policy takes over now."""

    def command(self, now: float) -> Array: ...

    def age_s(self, now: float) -> float | None:
        """How old the newest command is; None for a source that cannot fall silent."""
        ...

    def is_over(self, now: float) -> bool: ...

    def close(self) -> None: ...


class Constant:
    def __init__(self, command: tuple[float, ...] = (0.0, 0.0, 0.0)) -> None:
        self._command = np.array(command)

    def begin(self, now: float) -> None:
        pass

    def command(self, now: float) -> Array:
        return self._command

    def age_s(self, now: float) -> float | None:
        return None

    def is_over(self, now: float) -> bool:
        return False

    def close(self) -> None:
        pass


class Script(Constant):
    """Steps of (seconds, vx, vy, wz); its end is the end of the stage."""

    def __init__(self, steps: tuple[tuple[float, float, float, float], ...]) -> None:
        super().__init__()
        self._ends = np.cumsum([step[0] for step in steps]).tolist()
        self._commands = [np.array(step[1:]) for step in steps]
        self._start = 0.0

    def begin(self, now: float) -> None:
        self._start = now

    def command(self, now: float) -> Array:
        place = int(np.searchsorted(self._ends, now - self._start + 1e-9, side="right"))
        return self._commands[min(place, len(self._commands) - 1)]

    def is_over(self, now: float) -> bool:
        return bool(now - self._start >= self._ends[-1] - 1e-9)


class Udp(Constant):
    """The newest `[vx, vy, wz]` that arrived on a loopback port; silence counts from the beginning."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__()
        self._heard_at = 0.0
        self._socket = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.bind((host, port))

    @property
    def port(self) -> int:
        return int(self._socket.getsockname()[1])

    def begin(self, now: float) -> None:
        self._heard_at = now

    def command(self, now: float) -> Array:
        for _ in range(MAX_PACKETS_A_TICK):
            try:
                said = _velocity(self._socket.recv(MAX_PACKET + 1))
            except BlockingIOError:
                break
            if said is not None:
                self._command, self._heard_at = said, now
        return self._command if now - self._heard_at <= ZERO_AFTER_S else np.zeros(3)

    def age_s(self, now: float) -> float | None:
        return now - self._heard_at

    def close(self) -> None:
        self._socket.close()


def source_for(order: StageOrder) -> Source:
    """
    The stage's own constant command, or else the box's teleop.

    :raises NoSource: for a source that is unknown or not on this machine
    """
    values, teleop = order.stage.values, order.teleop
    if "command" in values:
        return Constant(tuple(float(value) for value in values["command"]))
    if teleop is None or teleop.source == "zero":
        return Constant()
    if teleop.source.startswith("script:"):
        if not teleop.steps:
            raise NoSource(f"{teleop.source} has no steps")
        return Script(teleop.steps)
    if teleop.source.startswith("udp:"):
        return Udp(*_address(teleop.source.removeprefix("udp:")))
    raise NoSource(f"{teleop.source!r} is no source of commands; zero, script:NAME and udp:HOST:PORT are")


def limited(command: Array, limits: Limits) -> Array:
    """The command inside the box's limit for each axis."""
    most = np.array(limits.command)
    inside: Array = np.minimum(np.maximum(command, -most), most)
    return inside


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    host = host.strip("[]").replace("localhost", "127.0.0.1")
    try:
        loopback, number = ipaddress.ip_address(host).is_loopback, int(port)
    except ValueError:
        raise NoSource(f"udp:{text} is no udp:HOST:PORT") from None
    if not loopback or not 0 <= number <= 65535:
        raise NoSource(f"udp:{text} is not on this machine; commands are taken from the loopback only")
    return host, number


def _velocity(packet: bytes) -> Array | None:
    """The three finite numbers of a packet; anything else is not heard."""
    if len(packet) > MAX_PACKET:
        return None
    try:
        said = json.loads(packet)
    except ValueError:
        return None
    if not isinstance(said, list) or len(said) != 3:
        return None
    if not all(type(value) in (int, float) and math.isfinite(value) for value in said):
        return None
    return np.array(said, dtype=float)
