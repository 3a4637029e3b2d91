"""From a policy's action to what the motors are told: targets, gains, the ramp and the clamp."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from driver.bodies.base import Array
from driver.contract.document import Contract
from driver.contract.pose import TOUCH, Span
from driver.policy.order import Limits, StageOrder

LEAST_STIFFNESS = 0.1  # the share that the ramp begins with


class TooFar(Exception):
    """The robot is not where the ramp may begin."""


@dataclass(frozen=True)
class Motors:
    """Gains and position limits of the driven joints, as this stage uses them."""

    stiffness: Array
    damping: Array
    low: Array
    high: Array

    def clamped(self, targets: Array) -> tuple[Array, bool]:
        """The nearest targets inside the limits, and whether any had to be moved."""
        inside = np.minimum(np.maximum(targets, self.low), self.high)
        return inside, bool((inside != targets).any())

    def spans(self, joints: Sequence[str]) -> dict[str, Span]:
        """Joint -> its lowest and highest position."""
        return dict(zip(joints, zip(self.low.tolist(), self.high.tolist(), strict=True), strict=True))

    def outside(self, targets: Array) -> int | None:
        """The first joint whose target is outside its limits, by place."""
        beyond = (targets < self.low - TOUCH) | (targets > self.high + TOUCH)
        return int(np.argmax(beyond)) if beyond.any() else None


def motors_for(order: StageOrder, body_limits: Array) -> Motors:
    """Gains of the profile times the sheet's scales; the narrower of the body's and the box's limits."""
    joints = order.contract.joints
    box = np.array([order.limits.joint_pos.get(joint, (-np.inf, np.inf)) for joint in joints], dtype=float)
    stiffness, damping = _gains(order)
    return Motors(
        stiffness=order.power_scale * stiffness,
        damping=order.kd_scale * damping,
        low=np.maximum(body_limits[:, 0], box[:, 0]),
        high=np.minimum(body_limits[:, 1], box[:, 1]),
    )


def _gains(order: StageOrder) -> tuple[Array, Array]:
    if order.gains is None:
        return np.array(order.contract.stiffness, dtype=float), np.array(order.contract.damping, dtype=float)
    joints = order.contract.joints
    stiffness, damping = (
        np.array([gain if isinstance(gain, int | float) else gain[joint] for joint in joints], dtype=float)
        for gain in (order.gains.stiffness, order.gains.damping)
    )
    return stiffness, damping


@dataclass(frozen=True)
class Ramp:
    """From the measured pose to the default pose, slow at both ends, with rising stiffness."""

    start: Array
    end: Array
    duration_s: float

    def at(self, elapsed_s: float) -> tuple[Array, float]:
        """The targets, and the share of the stiffness."""
        share = min(1.0, elapsed_s / self.duration_s) if self.duration_s > 0 else 1.0
        smooth = share * share * (3.0 - 2.0 * share)
        return self.start + smooth * (self.end - self.start), LEAST_STIFFNESS + (1 - LEAST_STIFFNESS) * share


def ramp_from(measured: Array, contract: Contract, limits: Limits) -> Ramp:
    """
    The way to the default pose.

    :raises TooFar: naming the joint, where it is longer than the box allows
    """
    default = np.array(contract.default_joint_pos)
    way = np.abs(measured - default)
    worst = int(np.argmax(way))
    if not way[worst] <= limits.max_ramp_rad:  # also when it is NaN
        raise TooFar(
            f"{contract.joints[worst]} is at {measured[worst]:.3f} rad, {way[worst]:.3f} from its default "
            f"{default[worst]:.3f}; the box's max_ramp_rad is {limits.max_ramp_rad:g}"
        )
    return Ramp(measured.copy(), default, limits.ramp_s)
