"""What a session says (C4-06, C4-11 … C4-15): judged on every read, from the rows through the rules."""

from datetime import timedelta
from typing import Any

import pytest

from devices.services.devices import revoke_device
from hub.accounts.actors import SYSTEM
from hub.campaigns.services import rounds
from tests.devices import factories as devices
from tests.factories import NOON, actor
from tests.hub.campaigns import factories as campaigns
from tests.trials import factories as made
from tests.trials.factories import MINUTE, Bench
from trials import readings
from trials.models import Trial, TrialSession
from trials.readings import SessionReading
from trials.rules.bracket import sentence

pytestmark = pytest.mark.usefixtures("object_store")

SAME: dict[str, Any] = {"tilt": 1.0}
LOST: dict[str, Any] = {"lost": True}


def read(session: TrialSession) -> SessionReading:
    return readings.read_session(TrialSession.objects.get(pk=session.pk), at=NOON + timedelta(days=1))


def judged(session: TrialSession, position: int) -> dict[str, Any]:
    reading = read(session)
    return {each["id"]: each for each in reading.judge(reading.trials[position - 1])}


def test_c4_06_two_control_runs_alike_hold_the_bracket(bench: Bench) -> None:
    session = made.whole_session(bench, SAME, SAME, {"tilt": 1.9}, candidates=[bench.good, bench.bad][:1])

    bracket = read(session).bracket
    assert (bracket["holds"], bracket["reason"]) == (True, None)


def test_c4_06_a_polluted_second_control_voids_every_comparison(bench: Bench) -> None:
    session = made.whole_session(bench, SAME, SAME, {"tilt": 4.0}, candidates=[bench.good])

    reading = read(session)
    assert reading.bracket["holds"] is False
    assert "decides nothing" in sentence(reading.bracket)
    against_control = [each for each in reading.judge(reading.trials[1]) if each["op"] == "<=control"]
    assert against_control
    assert [each["decides"] for each in against_control] == [False] * len(against_control)
    assert {each["decides"] for each in reading.comparisons()} == {False}


def test_c4_06_a_control_that_fell_voids_it_too(bench: Bench) -> None:
    session = made.whole_session(bench, SAME, SAME, {"fell": True}, candidates=[bench.good])

    assert read(session).bracket["falls"] == {
        "first": 0,
        "last": 2,
        "equal": False,
    }  # in hang and on the floor
    assert read(session).bracket["holds"] is False


def test_c4_06_it_is_open_until_both_controls_have_a_log(bench: Bench) -> None:
    session = bench.session(candidates=[bench.good])
    first, *_ = made.trials_of(session)
    assert read(session).bracket["reason"] == "waiting"

    bench.run(first)
    bench.log(first)

    assert (read(session).bracket["holds"], read(session).bracket["reason"]) == (None, "waiting")


def test_c4_06_a_lost_control_log_decides_nothing_and_says_so(bench: Bench) -> None:
    session = made.whole_session(bench, SAME, SAME, LOST, candidates=[bench.good])

    assert read(session).bracket["reason"] == "log_missing"


def test_c4_06_two_different_controls_are_no_bracket(bench: Bench) -> None:
    session = made.whole_session(
        bench, SAME, SAME, SAME, controls=[bench.control, bench.bad], candidates=[bench.good]
    )

    assert read(session).bracket["reason"] == "two_controls"


def test_c4_06_the_plans_own_tolerance_decides(bench: Bench) -> None:
    narrow = [{"metric": "tilt_mean_deg", "tolerance": {"source": "fixed", "value": 0.1}}]

    session = made.whole_session(bench, SAME, SAME, {"tilt": 1.3}, candidates=[bench.good], tolerances=narrow)

    assert read(session).bracket["holds"] is False


def test_c4_06_three_past_pairs_of_the_device_give_a_tolerance_from_history(bench: Bench) -> None:
    for number, last in enumerate((1.1, 0.9, 1.2)):
        at = NOON + timedelta(hours=number)
        made.whole_session(bench, SAME, SAME, {"tilt": last}, candidates=[bench.good], at=at)

    asked = [{"metric": "tilt_mean_deg", "tolerance": {"source": "history"}}]
    session = bench.session(tolerances=asked, at=NOON + timedelta(hours=5))

    limit = next(each for each in session.tolerances if each["metric"] == "tilt_mean_deg")["tolerance"]
    assert (limit["source"], limit["n"]) == ("history", 3)
    assert limit["value"] == pytest.approx(0.4502, abs=0.01)  # t₀.₉₇₅,₃ · √2 · √(0.06 / 6)


def test_a_session_is_not_part_of_its_own_history(bench: Bench) -> None:
    session = made.whole_session(bench, SAME, SAME, SAME, candidates=[bench.good])

    assert read(session).past == []
    assert len(readings.pairs_on(bench.device.pk)) == 1


def test_c4_11_criteria_are_judged_on_every_read(bench: Bench) -> None:
    session = bench.session(candidates=[bench.good])
    first, second, _ = made.trials_of(session)
    bench.run(first)
    bench.log(first, tilt=1.0)
    bench.run(second, at=NOON + 10 * MINUTE)
    assert judged(session, 2)["tilt-vs-control"]["result"] == "pending"

    bench.log(second, tilt=1.1)

    assert judged(session, 2)["tilt-vs-control"]["result"] == "FAIL"


def test_c4_12_against_the_control_is_the_mean_of_the_control_runs(bench: Bench) -> None:
    session = made.whole_session(bench, {"tilt": 1.0}, {"tilt": 1.2}, {"tilt": 1.8}, candidates=[bench.good])

    tilt = judged(session, 2)["tilt-vs-control"]
    assert tilt["control"]["mean"] == pytest.approx(1.4, abs=1e-3)
    assert (tilt["control_source"], tilt["result"]) == ("session", "PASS")


def test_c4_12_it_is_pending_until_a_control_has_a_log(bench: Bench) -> None:
    session = bench.session(candidates=[bench.good])
    first, second, _ = made.trials_of(session)
    bench.run(first)
    bench.run(second, at=NOON + 10 * MINUTE)
    bench.log(second)

    assert judged(session, 2)["tilt-vs-control"]["result"] == "pending"
    bench.log(first)
    assert judged(session, 2)["tilt-vs-control"]["result"] == "PASS"


def test_c4_12_with_every_control_log_lost_the_promoted_baseline_stands_in(bench: Bench) -> None:
    earlier = made.whole_session(bench, SAME, {"tilt": 1.1}, SAME, candidates=[bench.good])
    bench.judge(made.trials_of(earlier)[1], "promote")
    session = made.whole_session(
        bench, LOST, {"tilt": 1.05}, LOST, candidates=[bench.bad], at=NOON + timedelta(hours=2)
    )

    tilt = judged(session, 2)["tilt-vs-control"]
    assert tilt["control_source"] == "baseline"
    assert tilt["baseline"] == pytest.approx(1.1, abs=1e-3)
    assert tilt["result"] == "PASS"


def test_c4_13_gates_of_the_round_that_a_log_can_measure_are_judged_beside_sim(bench: Bench) -> None:
    session = made.whole_session(bench, SAME, {"tilt": 5.0}, SAME, candidates=[bench.good])

    said = judged(session, 2)
    assert (said["tilt"]["source"], said["tilt"]["result"], said["tilt"]["sim_value"]) == (
        "gate",
        "FAIL",
        1.0,
    )
    assert said["tilt-as-sim"]["result"] == "differs_from_sim"
    assert "upright" not in said  # a share of seeds is nothing that a log can measure


def test_c4_14_a_lost_log_is_unmeasured_and_an_awaited_one_pending(bench: Bench) -> None:
    session = bench.session(candidates=[bench.good])
    first, second, _ = made.trials_of(session)
    bench.run(first)
    bench.run(second, at=NOON + 10 * MINUTE)
    assert judged(session, 2)["no-falls"]["result"] == "pending"

    bench.lose_log(second)

    assert judged(session, 2)["no-falls"]["result"] == "unmeasured"


def test_c4_15_where_the_hub_finds_another_number_the_result_is_disputed(bench: Bench) -> None:
    session = bench.session(candidates=[bench.good])
    first = made.trials_of(session)[0]
    bench.run(first)
    content = made.stage_files(first, tilt=9.0)
    bench.upload(first, content)
    bench.record(first, bench.uploaded(first, content, tilt_mean_deg=1.0))

    said = judged(session, 1)["tilt"]
    assert (said["value"], said["result"], said["disputed"]) == (1.0, "PASS", True)
    assert said["hub_value"] == pytest.approx(9.0, abs=1e-3)


def test_stages_carry_the_status_that_the_signed_log_gave_them(bench: Bench) -> None:
    session = bench.session(candidates=[bench.good])
    first = made.trials_of(session)[0]
    bench.run(first)
    bench.log(first)

    reading = readings.read_trial(made.fresh(first), at=NOON)

    assert [(stage["name"], stage["status"]) for stage in reading.stages] == [
        ("hang", "done"),
        ("floor", "done"),
        ("teleop", "not_run"),
    ]


def test_position_clock_and_waiting_time_stand_beside_every_trial(bench: Bench) -> None:
    reading = read(made.whole_session(bench, SAME, SAME, SAME, candidates=[bench.good]))

    clocks = [reading.clock_of(trial) for trial in reading.trials]
    assert [clock.clock_s for clock in clocks] == [0.0, 600.0, 1200.0]
    assert [clock.waited_s for clock in clocks] == [None, 540.0, 540.0]


def _running(bench: Bench, trial: Trial) -> None:
    bench.consent(trial)
    bench.start(trial)


def test_a_list_gives_every_trial_the_status_that_the_rules_give_it(bench: Bench) -> None:
    second_box = devices.box(bench.owner, bench.by, robot=bench.campaign.robot, name="second")
    bench.session(candidates=[bench.good])  # on no device yet, because two would fit
    revoke_device(device=second_box.device, reason="sold", by=actor(bench.by), at=NOON)
    cancelled = bench.session(candidates=[bench.good])
    made.cancel(cancelled, by=bench.by)
    whole = made.whole_session(bench, SAME, SAME, LOST, SAME)
    bench.judge(made.trials_of(whole)[1])
    half = bench.session(candidates=[bench.good, bench.bad], at=NOON + timedelta(hours=1))
    first, second, third, _ = made.trials_of(half)
    bench.decline(first)
    bench.run(second, at=NOON + timedelta(hours=1))
    _running(bench, third)
    overdue = bench.session(candidates=[bench.good])
    bench.consent(made.trials_of(overdue)[0], at=NOON - timedelta(days=2))
    ready = bench.session(candidates=[bench.good], at=NOON + timedelta(hours=3))
    bench.consent(made.trials_of(ready)[0], at=NOON + timedelta(hours=3))
    at = NOON + timedelta(hours=4)

    by_sql = {trial.pk: trial.status for trial in Trial.objects.with_status(at=at)}  # type: ignore[attr-defined]

    by_rules: dict[str, str] = {}
    for session in TrialSession.objects.all():
        reading = readings.read_session(session, at=at)
        by_rules |= {line.trial.pk: line.status for line in reading.lines}
    assert by_sql == by_rules
    assert set(by_rules.values()) == {
        "planned",
        "awaiting_approval",
        "ready",
        "running",
        "awaiting_log",
        "needs_verdict",
        "measured",
        "decided",
        "closed",
    }


def test_a_round_locked_later_changes_no_planned_trial(bench: Bench) -> None:
    session = bench.session(candidates=[bench.good])
    made_later = campaigns.round_of(bench.campaign, campaigns.result(bench.good, tilt=7.0), is_locked=False)
    rounds.lock_round(round=made_later, by=SYSTEM, at=NOON)

    assert made.trials_of(session)[1].sim_measured == {"tilt": 1.0, "upright": 1.0}
