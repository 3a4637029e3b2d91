"""What a policy moves. A robot joins in by keeping this protocol; nothing above it knows which it is."""

from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]


class BodyError(Exception):
    """The body cannot do what is asked of it; the sentence says what to change."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a stage is going to do with the body."""

    joints: tuple[str, ...]  # the driven ones; every array below has one number for each, in this order
    period_s: float
    free_standing: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class State:
    """
    One reading of the body, in SI units and joint space.

    `gravity` points down in the body's frame: level is (0, 0, -1). What the body never measures is None; what
    it has not read yet is NaN.
    """

    joint_pos: Array
    joint_vel: Array
    ang_vel: Array
    gravity: Array
    age_s: float = 0.0  # how long ago the slowest part of it was measured
    lin_vel: Array | None = None
    torque: Array | None = None
    temps_c: Array | None = None
    battery_v: float | None = None


class Clock(Protocol):
    """The time the body lives in: the real one, or a simulation's own."""

    def now(self) -> float:
        """Seconds, never going back."""
        ...

    def sleep_until(self, moment: float) -> None:
        """Let time pass; a moment that is over returns at once."""
        ...


class Body(Protocol):
    """
    A robot, real or simulated.

    A stage connects, reads, ramps to the default pose while the robot hangs or is held, lets go, and then
    reads and sends once every tick until it sends no stiffness at all (damping) and disconnects.
    """

    clock: Clock
    simulated: bool  # the clock is not the world's

    def connect(self, plan: Plan) -> None:
        """
        Make ready, hanging or held, without moving.

        :raises BodyError: where the body lacks a joint of the plan or cannot keep its period
        """
        ...

    def joint_limits(self) -> Array:
        """Lowest and highest position of each driven joint, n × 2; infinite where there is none."""
        ...

    def read(self) -> State: ...

    def send(self, targets: Array, stiffness: Array, damping: Array) -> None:
        """Give the motors position targets (rad) and gains. They hold until the next call."""
        ...

    def let_go(self) -> None:
        """The ramp is over: a free-standing robot stands on its own now. Nothing, where people do that."""
        ...

    def disconnect(self) -> None:
        """Leave the motors in damping. Safe to call twice, and after a failure."""
        ...
