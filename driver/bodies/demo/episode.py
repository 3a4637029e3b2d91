"""Six seconds of Stilt in training: it stands, is asked to walk, and every tick is worth something."""

import math
from dataclasses import dataclass

import numpy as np

from driver.bodies.base import Array, Plan, State
from driver.bodies.demo.weights import (
    DAMPING,
    DEFAULT,
    GAIT_HZ,
    HOLD_BELOW,
    JOINTS,
    LEFT,
    PER,
    RIGHT,
    SCALE,
    SIGN,
    STIFFNESS,
    Weights,
)
from driver.bodies.mujoco import START_RAD, MujocoBody
from driver.bodies.options import Options

PERIOD_S = 0.02
TICKS = 300
STAND_S = (0.6, 1.6)
SPEED_M_S = (0.05, 0.25)
FALLEN = math.cos(math.radians(45))
LOW_M = 0.2
SWING_M = 0.025
SLOW = 0.02  # the share of a new tick in the slow mean of the legs' difference
ROLLS, ARMS = [0, 4, 5, 9], [10, 11]


@dataclass(frozen=True)
class Truth:
    """What only a simulation knows."""

    position: Array
    velocity: Array
    lin_vel: Array
    ang_vel: Array
    gravity: Array
    height: float
    heading: float
    feet: tuple[float, float]


def reward_of(policy: Weights, *, options: Options, seed: int) -> float:
    """The mean reward of one episode; nothing is earned after a fall."""
    rng = np.random.default_rng(seed)
    stands_s, speed = rng.uniform(*STAND_S), rng.uniform(*SPEED_M_S)
    body = _on_its_feet(MujocoBody(options, seed=seed), rng)
    action, uneven, earned = np.zeros(len(JOINTS)), np.zeros(len(LEFT)), 0.0
    for tick in range(TICKS):
        elapsed = tick * PERIOD_S
        command = np.array([speed if elapsed >= stands_s else 0.0, 0.0, 0.0])
        gait = _gait(command, elapsed)
        before, action = action, policy.action(observation(body.read(), command, action, gait))
        body.send(DEFAULT + SCALE * action, STIFFNESS, DAMPING)
        body.sleep_until(body.now() + PERIOD_S)
        truth = _truth(body)
        if -truth.gravity[2] < FALLEN or truth.height < LOW_M:
            break
        uneven += SLOW * (truth.position[LEFT] - SIGN * truth.position[RIGHT] - uneven)
        worth = _steadiness(truth, action - before, uneven)
        worth += _walking(truth, command, gait) if gait.any() else _standing(truth)
        earned += max(worth, -1.0)
    return earned / TICKS


def observation(state: State, command: Array, action: Array, gait: Array) -> Array:
    return np.concatenate(
        [
            state.ang_vel,
            state.gravity,
            command,
            state.joint_pos - DEFAULT,
            state.joint_vel,
            action,
            gait,
            command[0] / PER * gait,
        ]
    )


def _on_its_feet(body: MujocoBody, rng: np.random.Generator) -> MujocoBody:
    body.connect(Plan(joints=JOINTS, period_s=PERIOD_S, free_standing=True))
    body.data.qpos[7:] = DEFAULT + START_RAD * rng.standard_normal(len(JOINTS))
    body.let_go()
    return body


def _gait(command: Array, elapsed_s: float) -> Array:
    if abs(command[0]) <= HOLD_BELOW:
        return np.zeros(2)
    angle = 2 * math.pi * GAIT_HZ * elapsed_s
    return np.array([math.sin(angle), math.cos(angle)])


def _truth(body: MujocoBody) -> Truth:
    data = body.data
    w, x, y, z = data.qpos[3:7]
    heading = math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
    along, across = math.cos(heading), math.sin(heading)
    vx, vy, vz = data.qvel[:3]
    return Truth(
        position=data.qpos[7:],
        velocity=data.qvel[6:],
        lin_vel=np.array([along * vx + across * vy, along * vy - across * vx, vz]),
        ang_vel=data.qvel[3:6],
        gravity=np.array([2 * (w * y - x * z), -2 * (w * x + y * z), 2 * (x * x + y * y) - 1]),
        height=float(data.qpos[2]),
        heading=heading,
        feet=(float(data.site("left_sole").xpos[2]), float(data.site("right_sole").xpos[2])),
    )


def _steadiness(truth: Truth, change: Array, uneven: Array) -> float:
    lean, sway = truth.gravity[:2], truth.ang_vel[:2]
    return float(
        1 - 25 * (lean @ lean) - 0.03 * (sway @ sway) - 0.04 * (change @ change) - 4 * (uneven @ uneven)
    )


def _walking(truth: Truth, command: Array, gait: Array) -> float:
    """The gait lifts one foot at a time, so standing still is never the best answer to a command."""
    vx, vy = truth.lin_vel[:2]
    rolls, arms = truth.position[ROLLS], truth.position[ARMS] - DEFAULT[ARMS]
    swing, stance = truth.feet if gait[0] > 0 else truth.feet[::-1]
    wanted = SWING_M * abs(gait[0])
    lifted = min(1.0, swing / wanted) if wanted > 0.002 else 0.0
    return float(
        0.8 * math.exp(-(((vx - command[0]) / 0.08) ** 2))
        - 4 * vy * vy
        - 0.8 * abs(truth.heading)
        + 0.8 * lifted
        - 0.5 * min(1.0, max(0.0, stance) / SWING_M)
        - 0.4 * (rolls @ rolls)
        - 0.2 * (arms @ arms)
    )


def _standing(truth: Truth) -> float:
    away = truth.position - DEFAULT
    moving, drift = truth.velocity, truth.lin_vel
    return float(1 - away @ away - 0.01 * (moving @ moving) - 2 * (drift @ drift))
