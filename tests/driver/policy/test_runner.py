import math
from dataclasses import replace

import numpy as np
import pytest

from driver.bodies.base import BodyError, Plan, State
from driver.policy.commands import Constant, Script
from driver.policy.ending import Orphaned, Stopped
from driver.policy.inference import ModelFailed
from driver.policy.order import AbortRule, Limits
from driver.policy.rows import Layout
from tests.driver.policy.puppet import (
    DEFAULT,
    FakeClock,
    Puppet,
    Says,
    changed,
    contract,
    leaning,
    order,
    run,
)

TILT = AbortRule(metric="tilt_deg", op=">", value=45.0)


def after(seconds: float, **values: object) -> Puppet:
    """A body that reads differently once the policy has had the robot for so long."""
    usual = changed(temps_c=np.full(4, math.nan), battery_v=math.nan)
    return Puppet(turns=lambda since, state: (changed(**values) if since >= seconds - 1e-9 else usual)(state))


# A stage that goes as planned.


def test_a_stage_ends_after_its_duration_with_a_row_for_each_tick():
    ran = run(order(duration_s=1.0))

    assert ran.stop == ("completed", None)
    assert ran.log.column("t") == pytest.approx([tick * 0.02 for tick in range(50)])
    assert ran.log.column("tick") == list(range(50))


def test_time_in_the_log_begins_when_the_policy_takes_over():
    ran = run(order(limits=Limits(ramp_s=3.0)))

    assert ran.log.column("t")[0] == 0.0
    assert ran.body.let_go_at == pytest.approx(103.0)


def test_targets_are_the_default_pose_plus_the_scaled_action():
    ran = run(policy=Says(lambda _tick: [0.2, -0.2, 0.4, 0.0]))

    assert ran.log.rows[0][ran.log.columns.index("tgt:left_hip")] == pytest.approx(-0.3 + 0.5 * 0.2)
    assert ran.body.sent[5][0] == pytest.approx(DEFAULT + 0.5 * np.array([0.2, -0.2, 0.4, 0.0]))


def test_the_log_shows_the_policys_own_words():
    ran = run(policy=Says(lambda _tick: [0.2, -0.2, 0.4, 0.0]))

    assert ran.log.column("act:right_hip")[0] == 0.4


def test_an_action_is_clipped_where_the_contract_says_so_and_remembered_so():
    terms = [{"term": "last_action"}]
    policy = Says(lambda _tick: [3.0, -3.0, 0.5, 0.0])

    ran = run(order(contract_=contract(action_clip=1.0, observation=terms)), policy=policy)

    assert ran.log.column("tgt:left_hip")[0] == pytest.approx(-0.3 + 0.5)
    assert ran.log.column("act:left_hip")[0] == 3.0
    assert policy.saw[1]["obs"].tolist() == [1.0, -1.0, 0.5, 0.0]


def test_what_the_body_measures_is_in_the_log_and_what_it_does_not_is_not():
    body = after(-10, temps_c=np.array([40.0, 41.0, math.nan, 43.0]), battery_v=47.5)

    ran = run(body=body)

    assert ran.log.column("temp:left_knee")[0] == 41.0
    assert ran.log.column("bat_v")[0] == 47.5
    assert not [name for name in ran.log.columns if name.startswith("tau:")]
    assert ran.ending.motor_temps_c == {"left_hip": 40.0, "left_knee": 41.0, "right_knee": 43.0}
    assert ran.ending.battery_v == 47.5


def test_what_is_measured_for_the_first_time_later_has_no_column_and_does_no_harm():
    body = Puppet(turns=lambda since, state: replace(state, battery_v=47.5) if since > 0.5 else state)

    ran = run(body=body)

    assert ran.stop == ("completed", None)
    assert "bat_v" not in ran.log.columns


def test_a_reading_that_never_came_is_not_said():
    ran = run(body=after(99, battery_v=47.5))

    assert ran.ending.battery_v is None
    assert ran.ending.motor_temps_c == {}


def test_a_script_ends_the_stage_with_its_last_step():
    ran = run(order(duration_s=None), source=Script(((0.5, 0.1, 0.0, 0.0), (0.5, 0.2, 0.0, 0.0))))

    assert ran.stop == ("completed", None)
    assert len(ran.log.rows) == 50
    assert set(ran.log.column("cmd_vx")) == {0.1, 0.2}


@pytest.mark.parametrize("asked", [None, 60.0])
def test_a_stage_is_never_longer_than_the_box_allows(asked: float | None):
    ran = run(order(duration_s=asked, limits=Limits(ramp_s=0.1, max_stage_s=0.5)))

    assert ran.ending.stopped_by == "completed"
    assert "max_stage_s" in (ran.ending.reason or "")
    assert len(ran.log.rows) == 25


def test_a_command_beyond_the_boxs_limit_is_brought_inside():
    ran = run(source=Constant((2.0, 0.0, -2.0)))

    assert ran.log.rows[0][8:11] == [0.8, 0.0, -0.6]


# The ramp.


def test_the_ramp_brings_the_robot_to_its_default_pose_with_rising_stiffness():
    body = Puppet()
    body.position = DEFAULT + 0.5

    run(order(limits=Limits(ramp_s=1.0)), body=body)

    ramp = body.sent[:50]
    assert ramp[0][0] == pytest.approx(DEFAULT + 0.5)
    assert ramp[-1][0] == pytest.approx(DEFAULT, abs=0.002)
    stiffness = [sent[1][0] for sent in ramp]
    assert stiffness == sorted(stiffness)
    assert stiffness[0] == pytest.approx(4.0)


def test_a_robot_far_from_its_default_pose_is_not_moved_at_all():
    body = Puppet()
    body.position = DEFAULT + np.array([0.0, 1.2, 0.0, 0.0])

    ran = run(order(limits=Limits(max_ramp_rad=1.0)), body=body)

    assert ran.ending.stopped_by == "command_failed"
    assert "left_knee" in (ran.ending.reason or "")
    assert not any(stiffness.any() for _, stiffness, _ in body.sent)


def test_the_rules_watch_the_ramp_too_and_leave_a_row():
    body = Puppet(turns=lambda _since, state: replace(state, temps_c=np.full(4, 90.0)))

    ran = run(order(limits=Limits(temp_c=85)), body=body)

    assert ran.stop == ("abort_rule", "temp_c > 85")
    assert ran.log.column("act:left_hip") == [None]


# What stops a stage.


def test_a_fall_stops_the_stage_and_is_in_the_log():
    ran = run(order(rules=[TILT]), body=after(0.5, gravity=leaning(50)))

    assert ran.stop == ("abort_rule", "tilt_deg > 45")
    assert ran.ending.fell is True
    assert ran.log.column("fall") == [0] * 25 + [1]


def test_what_trips_a_rule_is_written_down_and_never_sent():
    wild = Says(lambda tick: np.full(4, 3.0 if tick == 10 else 0.0))

    ran = run(order(rules=[AbortRule(metric="action_abs", op=">", value=2.0)]), policy=wild)

    assert ran.stop == ("abort_rule", "action_abs > 2")
    assert ran.log.column("act:left_hip")[-1] == 3.0
    assert all(np.array_equal(targets, DEFAULT) for targets, stiffness, _ in ran.body.sent if stiffness.any())


@pytest.mark.parametrize(
    ("rule", "values"),
    [
        (AbortRule(metric="joint_error_rad", op=">", value=0.5), {"joint_pos": DEFAULT + 0.6}),
        (AbortRule(metric="joint_vel_rad_s", op=">", value=5.0), {"joint_vel": np.full(4, 6.0)}),
        (AbortRule(metric="temp_c", op=">", value=70.0), {"temps_c": np.full(4, 71.0)}),
        (AbortRule(metric="battery_v", op="<", value=40.0), {"battery_v": 39.0}),
        (AbortRule(metric="state_age_ms", op=">", value=100.0), {"age_s": 0.2}),
    ],
)
def test_every_rule_stops_the_stage_on_the_tick_that_breaks_it(rule: AbortRule, values: dict[str, object]):
    ran = run(order(rules=[rule]), body=after(0.5, **values))

    assert ran.stop == ("abort_rule", str(rule))
    assert len(ran.log.rows) == 26


def test_a_tick_that_came_late_breaks_the_rule_on_gaps():
    body = Puppet()
    body.clock = FakeClock(late={30: 0.15})

    ran = run(order(rules=[AbortRule(metric="loop_gap_ms", op=">", value=100.0)]), body=body)

    assert ran.stop == ("abort_rule", "loop_gap_ms > 100")


def test_after_a_late_tick_the_rhythm_is_kept_and_ticks_are_not_made_up_for():
    body = Puppet()
    body.clock = FakeClock(late={10: 0.05})

    ran = run(body=body)

    gaps = np.diff(ran.log.column("t"))
    assert np.count_nonzero(gaps > 0.025) == 1
    assert ran.log.column("t")[-1] == pytest.approx(0.98)
    assert len(ran.log.rows) == 48
    assert ran.log.column("tick") == list(range(48))


def test_the_operators_stop_ends_the_stage():
    calls = iter(range(1000))

    def asked() -> None:
        if next(calls) >= 20:
            raise Stopped("operator", "SIGINT")

    assert run(asked=asked).stop == ("operator", "SIGINT")


def test_a_stream_of_commands_that_falls_silent_ends_the_stage_after_a_second():
    class Silent(Constant):
        def age_s(self, now: float) -> float | None:
            return now - 100.1

    ran = run(order(duration_s=5.0), source=Silent())

    assert ran.ending.stopped_by == "link_lost"
    assert len(ran.log.rows) in (51, 52)


def test_a_rule_on_the_commands_age_is_the_sheets_to_make_stricter():
    class Silent(Constant):
        def age_s(self, now: float) -> float | None:
            return now - 100.1

    rule = AbortRule(metric="command_age_ms", op=">", value=500.0)

    assert run(order(duration_s=5.0, rules=[rule]), source=Silent()).stop == ("abort_rule", str(rule))


# What the policy must not do.


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_an_action_that_is_no_number_fails_the_stage(wrong: float):
    ran = run(policy=Says(lambda tick: [0.0, wrong if tick == 3 else 0.0, 0.0, 0.0]))

    assert ran.stop == ("command_failed", "the policy's action is not finite")
    assert len(ran.log.rows) == 3
    assert all(np.isfinite(targets).all() for targets, _, _ in ran.body.sent)


def test_a_first_action_outside_the_joints_limits_fails_the_stage_by_name():
    ran = run(policy=Says(lambda _tick: [0.0, 3.0, 0.0, 0.0]))

    assert ran.ending.stopped_by == "command_failed"
    assert "left_knee at 2.100 rad" in (ran.ending.reason or "")
    assert ran.log.rows == []


def test_later_targets_outside_the_limits_are_clamped_and_counted():
    ran = run(policy=Says(lambda tick: [0.0, 3.0 if 10 <= tick < 15 else 0.0, 0.0, 0.0]))

    assert ran.stop == ("completed", None)
    assert ran.ending.clamped_ticks == 5
    assert max(ran.log.column("tgt:left_knee")) == 2.0


def test_a_policy_that_cannot_run_fails_the_stage():
    def fail(_tick: int) -> list[float]:
        raise ModelFailed("the policy failed: out of memory")

    assert run(policy=Says(fail)).stop == ("command_failed", "the policy failed: out of memory")


def test_a_velocity_that_the_body_does_not_measure_is_refused_before_anything_moves():
    ran = run(order(contract_=contract(observation=[{"term": "base_lin_vel"}])))

    assert "base_lin_vel" in (ran.ending.reason or "")
    assert not any(stiffness.any() for _, stiffness, _ in ran.body.sent)


def test_a_joint_that_reads_as_no_number_fails_the_stage():
    ran = run(body=after(0.5, joint_pos=np.array([0.0, math.nan, 0.0, 0.0])))

    assert ran.ending.stopped_by == "command_failed"


# How it stops.


def held_and_braking(body: Puppet) -> tuple[int, int]:
    """How many ticks the last target was held, and how many there was damping only."""
    damping = [index for index, sent in enumerate(body.sent) if not sent[1].any()]
    return damping[0], len(damping)


def test_stopping_holds_the_last_target_for_a_moment_and_then_brakes():
    ran = run(order(duration_s=1.0), policy=Says(lambda _tick: [0.2, 0.0, 0.0, 0.0]))

    first_damping, damped = held_and_braking(ran.body)
    ramp, policy, hold = 5, 50, 15  # 0.3 s
    assert first_damping == ramp + policy + hold
    assert ran.body.sent[first_damping - 1][0][0] == pytest.approx(-0.2)
    assert damped >= 25
    assert all(np.array_equal(damping, [2.0] * 4) for _, _, damping in ran.body.sent[first_damping:])


def test_an_orphan_brakes_at_once():
    calls = iter(range(1000))

    def asked() -> None:
        if next(calls) >= 20:
            raise Orphaned

    ran = run(asked=asked)

    assert ran.ending.stopped_by == "driver_stopped"
    first_damping, _ = held_and_braking(ran.body)
    assert first_damping == 21


def test_an_orphan_does_not_finish_holding():
    calls = iter(range(1000))

    def asked() -> None:
        if next(calls) >= 56:
            raise Orphaned

    ran = run(order(duration_s=1.0), asked=asked)

    first_damping, _ = held_and_braking(ran.body)
    assert first_damping < 5 + 50 + 5


def test_an_error_nobody_foresaw_brakes_and_is_not_hidden():
    def turn(since: float, state: State) -> State:
        if since > 0.5:
            raise RuntimeError("the bus is gone")
        return state

    body = Puppet(turns=turn)

    with pytest.raises(RuntimeError, match="the bus is gone"):
        run(body=body)

    assert not body.sent[-1][1].any()
    assert not body.is_connected


def test_a_body_that_cannot_do_it_is_refused_in_its_own_words():
    class Bolted(Puppet):
        def connect(self, plan: Plan) -> None:
            raise BodyError("the model has no joint 'left_hip'")

    ran = run(body=Bolted())

    assert ran.stop == ("command_failed", "the model has no joint 'left_hip'")
    assert ran.body.sent == []


def test_a_full_disk_stops_the_stage_in_words():
    class Full:
        def write(self, _row: object) -> None:
            raise OSError(28, "No space left on device")

    from driver.policy.runner import Parts, run_stage

    body = Puppet()
    ending = run_stage(
        order(), Parts(body=body, policy=Says(), source=Constant(), open_log=lambda _columns: Full())
    )

    assert ending.stopped_by == "command_failed"
    assert "No space left" in (ending.reason or "")
    assert not body.sent[-1][1].any()


def test_tilt_protection_is_said_as_it_was():
    assert run(order(rules=[TILT])).ending.tilt_protection == {"armed": True, "threshold_deg": 45.0}
    hanging = run(order(name="hang", free_standing=False))
    assert hanging.ending.tilt_protection == {"armed": False, "threshold_deg": None}
    assert hanging.ending.fell is None
    assert set(hanging.log.column("fall")) == {None}


# What cannot see a fall.

NO_DIRECTIONS = [(0, 0, 0), (math.nan, 0, -1), (math.inf, 0, 0), (0, 0, -0.49), (0, 0, -9.81)]


@pytest.mark.parametrize("gravity", NO_DIRECTIONS)
def test_a_gravity_that_is_no_direction_stops_a_stage_that_watches_the_tilt(gravity: tuple[float, ...]):
    ran = run(body=after(0.5, gravity=np.array(gravity, dtype=float)))

    assert ran.ending.stopped_by == "command_failed"
    assert "is no direction, so a fall would not be seen" in (ran.ending.reason or "")
    assert ran.ending.fell is None
    assert len(ran.log.rows) == 25


def test_a_turn_rate_that_is_not_finite_stops_a_stage_that_watches_the_tilt():
    ran = run(body=after(0.5, ang_vel=np.array([0.0, math.nan, 0.0])))

    assert ran.ending.stopped_by == "command_failed"
    assert "angular velocity is not finite" in (ran.ending.reason or "")


def test_a_body_that_is_blind_from_the_start_is_not_moved_at_all():
    ran = run(body=Puppet(turns=lambda _since, state: replace(state, gravity=np.zeros(3))))

    assert ran.ending.stopped_by == "command_failed"
    assert not any(stiffness.any() for _, stiffness, _ in ran.body.sent)


def test_a_stage_that_hangs_needs_no_gravity_unless_a_rule_of_its_own_does():
    blind = {"gravity": np.zeros(3)}

    assert run(order(free_standing=False), body=after(0.5, **blind)).stop == ("completed", None)
    watched = run(order(free_standing=False, rules=[TILT]), body=after(0.5, **blind))
    assert watched.ending.stopped_by == "command_failed"


@pytest.mark.parametrize("gravity", NO_DIRECTIONS)
def test_a_row_without_a_tilt_says_nothing_about_a_fall(gravity: tuple[float, ...]):
    state = replace(Puppet().read(), gravity=np.array(gravity, dtype=float))

    row = Layout(contract(), state).row(
        state, t=0.0, tick=0, command=np.zeros(3), targets=DEFAULT, action=None, fall=0
    )

    assert row[-1] is None


# Where the joints may go.


@pytest.mark.parametrize("span", [(0.7, 1.5), (-1.5, 0.5)])
def test_a_default_pose_beyond_the_boxs_limits_is_refused_before_anything_moves(span: tuple[float, float]):
    ran = run(order(limits=Limits(ramp_s=0.1, joint_pos={"left_knee": span})))

    assert ran.ending.stopped_by == "command_failed"
    assert "the default pose has left_knee at 0.600 rad, outside" in (ran.ending.reason or "")
    assert not any(stiffness.any() for _, stiffness, _ in ran.body.sent)


def test_a_default_pose_beyond_the_bodys_own_limits_is_refused_too():
    body = Puppet()
    body.limits = np.tile([-0.5, 0.5], (4, 1))

    assert "the default pose has left_knee" in (run(body=body).ending.reason or "")


def test_no_target_of_the_ramp_is_beyond_the_limits_where_the_robot_hangs_beyond_them():
    body = Puppet()
    body.position = DEFAULT + np.array([0.0, 0.8, 0.0, 0.0])

    ran = run(order(limits=Limits(ramp_s=1.0, joint_pos={"left_knee": (-1.0, 1.0)})), body=body)

    assert ran.stop == ("completed", None)
    assert max(targets[1] for targets, stiffness, _ in body.sent if stiffness.any()) == 1.0
    assert ran.ending.clamped_ticks == 0
