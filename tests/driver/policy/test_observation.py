import math
from typing import Any

import numpy as np
import pytest

from driver.bodies.base import State
from driver.policy.observation import Observer
from tests.driver.policy.puppet import DEFAULT, contract

WALK = np.array([0.2, -0.1, 0.3])


def state(number: float = 0.0) -> State:
    return State(
        joint_pos=DEFAULT + np.array([0.1, 0.2, 0.3, 0.4]) + number,
        joint_vel=np.array([1.0, 2.0, 3.0, 4.0]) + number,
        ang_vel=np.array([0.5, 0.6, 0.7]) + number,
        gravity=np.array([0.0, 0.1, -0.9]),
        lin_vel=np.array([7.0, 8.0, 9.0]),
    )


def seen(
    observer: Observer, number: float = 0.0, *, command: Any = WALK, elapsed_s: float = 0.0
) -> list[float]:
    feeds = observer.feeds(
        state(number), command=np.array(command), last_action=np.arange(4.0) + number, elapsed_s=elapsed_s
    )
    return feeds["obs"].tolist()


def observer(*terms: Any, **changes: Any) -> Observer:
    listed = [{"term": term} if isinstance(term, str) else term for term in terms]
    return Observer(contract(observation=listed, **changes))


def test_terms_come_in_the_contracts_order():
    assert seen(observer("projected_gravity", "base_ang_vel", "last_action")) == pytest.approx(
        [0.0, 0.1, -0.9, 0.5, 0.6, 0.7, 0.0, 1.0, 2.0, 3.0]
    )


def test_positions_are_relative_to_the_default_pose_and_velocities_are_not():
    assert seen(observer("joint_pos_rel", "joint_vel")) == pytest.approx([0.1, 0.2, 0.3, 0.4, 1, 2, 3, 4])


def test_a_body_that_measures_its_velocity_can_tell_the_policy():
    assert seen(observer("base_lin_vel")) == [7.0, 8.0, 9.0]


def test_a_scale_multiplies_its_term_and_no_other():
    said = seen(observer({"term": "base_ang_vel", "scale": 0.2}, "command"))

    assert said == pytest.approx([0.1, 0.12, 0.14, 0.2, -0.1, 0.3])


def test_a_scale_can_differ_within_a_term():
    assert seen(observer({"term": "command", "scale": [2.0, 2.0, 0.25]})) == pytest.approx([0.4, -0.2, 0.075])


def test_the_axes_of_the_command_come_as_they_are_named():
    assert seen(observer({"term": "command", "names": ["wz", "vx"]})) == pytest.approx([0.3, 0.2])


def test_numbers_reach_the_model_as_32_bit_floats():
    feeds = observer("command").feeds(state(), command=WALK, last_action=np.zeros(4), elapsed_s=0.0)

    assert feeds["obs"].dtype == np.float32


# History.


def frames(order: str) -> list[float]:
    """Three frames of two terms, after four ticks whose numbers rise by ten."""
    watcher = observer(
        {"term": "command", "names": ["vx", "vy"]},
        "last_action",
        history={"length": 3, "order": order},
    )
    for tick in range(4):
        said = seen(watcher, 10.0 * tick, command=[tick, -tick, 0.0])
    return said


def test_a_history_by_terms_has_each_terms_frames_together_oldest_first():
    assert frames("term") == [
        *[1.0, -1.0, 2.0, -2.0, 3.0, -3.0],
        *[10.0, 11.0, 12.0, 13.0, 20.0, 21.0, 22.0, 23.0, 30.0, 31.0, 32.0, 33.0],
    ]


def test_a_history_by_frames_has_each_frames_terms_together_oldest_first():
    assert frames("frame") == [
        *[1.0, -1.0, 10.0, 11.0, 12.0, 13.0],
        *[2.0, -2.0, 20.0, 21.0, 22.0, 23.0],
        *[3.0, -3.0, 30.0, 31.0, 32.0, 33.0],
    ]


def test_a_history_begins_full_of_the_first_frame():
    watcher = observer("command", history={"length": 3, "order": "frame"})

    assert seen(watcher, command=[1.0, 2.0, 3.0]) == [1.0, 2.0, 3.0] * 3


def test_each_input_gets_its_own_terms_with_their_history():
    watcher = observer(
        "base_ang_vel",
        "command",
        input={"ask": ["command"], "body": ["base_ang_vel"]},
        history={"length": 2, "order": "term"},
    )

    feeds = watcher.feeds(state(), command=WALK, last_action=np.zeros(4), elapsed_s=0.0)

    assert feeds["ask"] == pytest.approx([*WALK, *WALK])
    assert feeds["body"] == pytest.approx([0.5, 0.6, 0.7] * 2)


# The gait.

GAIT = ("command", "gait_phase", "gait_phase_command")
PHASE = {"frequency_hz": 2.0, "hold_below": 0.1, "per": 0.25}


def gait(command: list[float], elapsed_s: float) -> list[float]:
    return seen(observer(*GAIT, phase=PHASE), command=command, elapsed_s=elapsed_s)[3:]


def test_the_phase_turns_with_the_time_since_the_stages_start():
    angle = 2 * math.pi * 2.0 * 0.07

    assert gait([0.25, 0.0, 0.0], 0.07) == pytest.approx(
        [math.sin(angle), math.cos(angle), math.sin(angle), math.cos(angle)]
    )


def test_the_phase_of_the_command_grows_with_vx():
    assert gait([0.5, 0.0, 0.0], 0.0) == pytest.approx([0.0, 1.0, 0.0, 2.0])


@pytest.mark.parametrize("command", [[0.0, 0.0, 0.0], [0.06, 0.08, 0.0]])
def test_the_phase_rests_while_the_command_is_small(command: list[float]):
    assert gait(command, 0.07) == [0.0, 0.0, 0.0, 0.0]
