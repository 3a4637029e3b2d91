import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.policy.deadlines import Deadlines
from driver.policy.motion import Motors, TooFar, motors_for, ramp_from
from driver.policy.order import Gains, Limits
from tests.driver.policy.puppet import DEFAULT, contract, order

FREE = np.tile([-np.inf, np.inf], (4, 1))


# The ramp.


def test_the_ramp_begins_where_the_robot_is_and_ends_in_the_default_pose():
    ramp = ramp_from(DEFAULT + 0.4, contract(), Limits(ramp_s=3.0))

    assert ramp.at(0.0)[0] == pytest.approx(DEFAULT + 0.4)
    assert ramp.at(3.0)[0] == pytest.approx(DEFAULT)


def test_stiffness_rises_along_the_ramp():
    ramp = ramp_from(DEFAULT, contract(), Limits(ramp_s=2.0))

    shares = [ramp.at(elapsed)[1] for elapsed in (0.0, 0.5, 1.0, 2.0)]

    assert shares == pytest.approx([0.1, 0.325, 0.55, 1.0])


@given(st.floats(-0.9, 0.9), st.floats(0.0, 3.0))
def test_the_ramp_never_leaves_the_way_between_its_ends(away: float, elapsed: float):
    targets, share = ramp_from(DEFAULT + away, contract(), Limits(ramp_s=3.0)).at(elapsed)

    assert np.all(targets >= np.minimum(DEFAULT, DEFAULT + away) - 1e-12)
    assert np.all(targets <= np.maximum(DEFAULT, DEFAULT + away) + 1e-12)
    assert 0.1 <= share <= 1.0


@pytest.mark.parametrize("measured", [1.61, np.nan])
def test_a_joint_too_far_from_its_default_refuses_the_ramp_by_name(measured: float):
    pose = DEFAULT.copy()
    pose[1] = measured

    with pytest.raises(TooFar, match="left_knee"):
        ramp_from(pose, contract(), Limits(max_ramp_rad=1.0))


# Gains and limits.


def test_the_sheets_scales_multiply_the_contracts_gains():
    motors = motors_for(order(kd_scale=1.5, power_scale=0.5), FREE)

    assert motors.stiffness.tolist() == [20.0, 25.0, 20.0, 25.0]
    assert motors.damping.tolist() == [3.0] * 4


def test_a_gain_profile_of_the_box_replaces_the_contracts_by_joint_name():
    knees_soft = {"left_hip": 60.0, "left_knee": 30.0, "right_hip": 60.0, "right_knee": 30.0}
    motors = motors_for(order(gain_profile="soft", gains=Gains(stiffness=knees_soft, damping=3.0)), FREE)

    assert motors.stiffness.tolist() == [60.0, 30.0, 60.0, 30.0]
    assert motors.damping.tolist() == [3.0] * 4


def test_the_narrower_of_the_bodys_and_the_boxs_limits_holds():
    body = np.array([[-1.0, 1.0], [-1.0, 1.0], [-1.0, 1.0], [-np.inf, np.inf]])
    limits = Limits(joint_pos={"left_hip": (-0.5, 2.0), "right_knee": (0.0, 1.5)})

    motors = motors_for(order(limits=limits), body)

    assert motors.low.tolist() == [-0.5, -1.0, -1.0, 0.0]
    assert motors.high.tolist() == [1.0, 1.0, 1.0, 1.5]


def motors(low: float = -1.0, high: float = 1.0) -> Motors:
    return Motors(np.ones(2), np.ones(2), np.full(2, low), np.full(2, high))


@given(st.lists(st.floats(-10, 10), min_size=2, max_size=2))
def test_a_clamped_target_is_inside_and_counts_when_it_was_moved(targets: list[float]):
    inside, moved = motors().clamped(np.array(targets))

    assert np.all((inside >= -1) & (inside <= 1))
    assert moved == any(abs(target) > 1 for target in targets)
    assert all(new == old for new, old in zip(inside, targets, strict=True) if abs(old) <= 1)


def test_the_first_joint_outside_is_found():
    assert motors().outside(np.array([0.0, 1.2])) == 1
    assert motors().outside(np.array([1.0, -1.0])) is None


# Deadlines.


def test_ticks_come_at_absolute_moments_however_long_the_work_takes():
    deadlines, now, moments = Deadlines(start=100.0, period=0.02), 100.0, []
    for work in (0.001, 0.015, 0.019, 0.002, 0.0):
        moments.append(deadlines.following(now + work))
        now = moments[-1]

    assert moments == pytest.approx([100.02, 100.04, 100.06, 100.08, 100.10])


def test_a_tick_that_overran_skips_what_is_over_and_keeps_the_rhythm():
    deadlines = Deadlines(start=100.0, period=0.02)

    assert deadlines.following(100.0) == pytest.approx(100.02)
    assert deadlines.following(100.075) == pytest.approx(100.08)
    assert deadlines.following(100.08) == pytest.approx(100.10)


def test_waking_a_moment_early_does_not_make_the_same_tick_twice():
    deadlines = Deadlines(start=100.0, period=0.02)
    deadlines.following(100.0)

    assert deadlines.following(100.0199) == pytest.approx(100.04)


@given(st.lists(st.floats(0.0, 0.3), min_size=1, max_size=50))
def test_no_deadline_is_over_and_all_are_on_the_grid(works: list[float]):
    deadlines, now = Deadlines(start=5.0, period=0.02), 5.0
    for work in works:
        following = deadlines.following(now + work)

        assert following > now
        assert following > now + work - 1e-9
        assert (following - 5.0) / 0.02 == pytest.approx(round((following - 5.0) / 0.02), abs=1e-6)
        now = following
