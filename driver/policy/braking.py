"""The stop procedure: hold the last target for a moment, then let the motors only brake."""

import sys
from collections.abc import Callable

import numpy as np

from driver.bodies.base import Array, Body
from driver.policy.ending import Orphaned, Stopped
from driver.policy.motion import Motors

HOLD_S = 0.3
DAMPING_S = 0.5


def brake(
    body: Body, motors: Motors, *, held: Array | None, period_s: float, asked: Callable[[], None]
) -> None:
    """
    Never a bare loss of torque: the last target for 0.3 s, then damping for as long as it takes to sink.

    With nothing to hold it is damping at once. Whatever goes wrong on the way, damping has been sent.
    """
    try:
        if held is not None:
            _repeat(body, (held, motors.stiffness, motors.damping), HOLD_S, period_s, asked)
        damp(body, motors)
        _repeat(body, _damping(motors), DAMPING_S, period_s, asked)
    except Orphaned:
        damp(body, motors)
    except Exception as error:  # noqa: BLE001  # a body that fails while it stops must still be told to brake
        print(f"while stopping: {error}", file=sys.stderr)
        damp(body, motors)


def damp(body: Body, motors: Motors) -> None:
    body.send(*_damping(motors))


def _damping(motors: Motors) -> tuple[Array, Array, Array]:
    nothing = np.zeros(len(motors.damping))
    return nothing, nothing, motors.damping


def _repeat(
    body: Body,
    sent: tuple[Array, Array, Array],
    duration_s: float,
    period_s: float,
    asked: Callable[[], None],
) -> None:
    for _ in range(round(duration_s / period_s)):
        body.send(*sent)
        body.clock.sleep_until(body.clock.now() + period_s)
        _only_orphaned(asked)


def _only_orphaned(asked: Callable[[], None]) -> None:
    """It is stopping already; only the loss of the parent still changes how."""
    try:
        asked()
    except Stopped:
        return
