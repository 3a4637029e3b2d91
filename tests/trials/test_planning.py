"""Planning (C4-02 … C4-08): one function, whoever asks; what it writes down and what it refuses."""

import pytest

from devices.models import Approval
from devices.services.consent import ContractNotAccepted
from hub.accounts.models import Account, User
from hub.audit import services as audit
from hub.audit.models import Event
from hub.campaigns.models import Checkpoint
from hub.campaigns.services import lineage
from hub.campaigns.services.lineage import LineageEnded
from hub.campaigns.services.rounds import AlreadyDecided
from hub.core.lifecycle import WrongState
from hub.core.problems import Unprocessable
from tests.devices import factories as devices
from tests.factories import NOON, actor
from tests.hub.campaigns import factories as campaigns
from tests.trials import factories as made
from tests.trials.factories import Bench
from trials.models import RunSheet, Trial, TrialSession
from trials.services import sessions
from trials.services.planning import PicksRefused


def test_c4_03_the_control_runs_first_and_last_and_candidates_by_rising_risk(bench: Bench) -> None:
    session = bench.decide()

    order = [(trial.role, trial.checkpoint) for trial in made.trials_of(session)]
    assert order == [
        ("control", bench.control),
        ("candidate", bench.good),
        ("candidate", bench.bad),
        ("control", bench.control),
    ]


def test_c4_04_two_controls_run_first_and_last(bench: Bench) -> None:
    other = campaigns.checkpoint(bench.campaign, step=650)

    session = bench.session(controls=[other, bench.control])

    assert [trial.checkpoint for trial in made.trials_of(session)][::3] == [other, bench.control]


@pytest.mark.parametrize("case", ["no control", "three controls", "no candidate", "twice", "both"])
def test_c4_04_picks_that_make_no_session_are_refused_by_name(bench: Bench, case: str) -> None:
    third = campaigns.checkpoint(bench.campaign, step=600)
    picks, field, offender = {
        "no control": ({"controls": []}, "controls", None),
        "three controls": (
            {"controls": [bench.control, bench.good, third], "candidates": [bench.bad]},
            "controls",
            third,
        ),
        "no candidate": ({"candidates": []}, "candidates", None),
        "twice": ({"candidates": [bench.good, bench.good]}, "candidates", bench.good),
        "both": ({"candidates": [bench.good, bench.control]}, "candidates", bench.control),
    }[case]

    with pytest.raises(PicksRefused) as refused:
        bench.session(**picks)

    assert list(refused.value.members["errors"]) == [field]
    assert refused.value.members["checkpoint"] == (offender and offender.pk)
    assert not TrialSession.objects.exists()


def test_a_pick_that_is_not_verified_is_refused_by_name(bench: Bench) -> None:
    Checkpoint.objects.filter(pk=bench.good.pk).update(verified_at=None)

    with pytest.raises(PicksRefused) as refused:
        bench.session()

    assert refused.value.members["errors"] == {
        "candidates": ["walk-8 step 400 is not uploaded and verified yet."]
    }


def test_a_pick_for_another_robot_is_refused_by_name(bench: Bench) -> None:
    other = campaigns.robot(bench.owner, slug="other")
    stranger = campaigns.checkpoint(campaigns.campaign(bench.owner, robot=other, name="other"), step=1)

    with pytest.raises(PicksRefused) as refused:
        bench.session(candidates=[stranger])

    assert refused.value.members["checkpoint"] == stranger.pk


def test_a_shortlisted_checkpoint_has_to_be_measured_in_the_round(bench: Bench) -> None:
    unmeasured = campaigns.checkpoint(bench.campaign, step=900)

    with pytest.raises(PicksRefused) as refused:
        bench.decide(candidates=[unmeasured])

    assert refused.value.members["errors"] == {"shortlist": ["walk-7 step 900 was not measured in round 1."]}


def test_a_pick_whose_lineage_has_ended_is_refused(bench: Bench) -> None:
    lineage.end_lineage(checkpoint=bench.bad, reason="it fell", by=actor(bench.by), at=NOON)

    with pytest.raises(LineageEnded):
        bench.session()


def test_c4_08_a_round_has_one_shortlist_and_the_second_names_the_session(bench: Bench) -> None:
    first = bench.decide()

    with pytest.raises(AlreadyDecided) as refused:
        bench.decide(candidates=[bench.good])

    assert refused.value.members["session"] == first.pk
    assert TrialSession.objects.count() == 1


def test_a_draft_is_not_shortlisted(bench: Bench) -> None:
    bench.round = campaigns.round_of(bench.campaign, campaigns.result(bench.good), is_locked=False)

    with pytest.raises(WrongState):
        bench.decide(candidates=[bench.good])


def test_a_refused_plan_leaves_its_round_undecided(bench: Bench) -> None:
    with pytest.raises(PicksRefused):
        bench.decide(controls=[])

    bench.round.refresh_from_db()
    assert bench.round.state == "locked"


def test_a_round_is_planned_again_once_its_session_was_called_off(bench: Bench) -> None:
    first = bench.decide()
    with pytest.raises(AlreadyDecided):
        _replan(bench)
    sessions.cancel_session(session=first, by=actor(bench.by), at=NOON)

    second = _replan(bench)

    assert second.round == bench.round
    checkpoints = [[trial.checkpoint for trial in made.trials_of(each)] for each in (first, second)]
    assert checkpoints[0] == checkpoints[1]


def test_a_round_without_a_shortlist_supplies_no_picks(bench: Bench) -> None:
    with pytest.raises(sessions.NotShortlisted):
        _replan(bench)


def test_a_trial_keeps_what_its_round_had_locked(bench: Bench) -> None:
    trial = made.trials_of(bench.decide())[1]

    assert trial.gates == campaigns.GATES
    assert trial.sim["gates_passed"] == 2
    assert trial.sim_measured == {"tilt": 1.0, "upright": 1.0}


def test_explicit_picks_are_ordered_by_the_newest_round_that_measured_them(bench: Bench) -> None:
    campaigns.round_of(
        bench.campaign, campaigns.result(bench.good, tilt=9.0), campaigns.result(bench.bad, tilt=1.0)
    )

    session = bench.session()

    assert [trial.checkpoint for trial in made.trials_of(session)][1:3] == [bench.bad, bench.good]


def test_c4_16_every_trial_gets_a_run_sheet_with_its_predictions(bench: Bench) -> None:
    trials = made.trials_of(bench.decide())

    sheets = [trial.run_sheet for trial in trials]
    assert [sheet.document["position"] for sheet in sheets] == [1, 2, 3, 4]
    assert [sheet.locked_at for sheet in sheets] == [None] * 4
    assert sheets[1].document["predictions"][0] == {
        "gate": "tilt",
        "metric": "tilt_mean_deg",
        "sim_value": 1.0,
        "conditions": {"terrain": "flat"},
    }


def test_c4_07_the_only_device_that_fits_is_asked_at_once_and_nothing_is_approved(bench: Bench) -> None:
    session = bench.decide()

    asked = Approval.objects.filter(trial__session=session)
    assert session.device == bench.device
    assert [approval.state for approval in asked] == ["requested"] * 4
    assert {approval.reason for approval in asked} == {made.REASON}


def test_c4_07_between_two_devices_that_fit_nobody_is_asked(bench: Bench) -> None:
    devices.box(bench.owner, bench.by, robot=bench.campaign.robot, name="second")

    session = bench.decide()

    assert session.device is None
    assert not Approval.objects.exists()


def test_c4_07_a_named_device_that_does_not_accept_a_contract_stops_the_plan(bench: Bench) -> None:
    narrow = devices.box(bench.owner, bench.by, robot=bench.campaign.robot, name="narrow", accepts=[])

    with pytest.raises(ContractNotAccepted) as refused:
        bench.decide(device=narrow.device)

    assert refused.value.members["position"] == 1
    assert refused.value.members["checkpoint"] == bench.control.pk
    assert not TrialSession.objects.exists()
    assert not Approval.objects.exists()


def test_without_a_campaign_the_session_is_the_devices_owners(bench: Bench) -> None:
    session = bench.session(campaign=None, device=bench.device)

    assert (session.owner, session.campaign, session.device) == (bench.owner, None, bench.device)
    assert session.baseline is None


def test_the_plan_names_what_decides_and_each_tolerance_with_its_source(bench: Bench) -> None:
    asked = {"metric": "tilt_mean_deg", "tolerance": {"source": "fixed", "value": 0.5}}

    session = bench.decide(tolerances=[asked])

    said = {entry["metric"]: entry for entry in session.tolerances}
    assert said["tilt_mean_deg"] == {
        "metric": "tilt_mean_deg",
        "decides": True,
        "tolerance": {"value": 0.5, "source": "fixed"},
    }
    assert said["tracking_error_rad"]["tolerance"] == {"value": 0.05, "source": "fixed"}


def test_a_tolerance_from_history_needs_past_control_pairs(bench: Bench) -> None:
    with pytest.raises(Unprocessable) as refused:
        bench.decide(tolerances=[{"metric": "tilt_mean_deg", "tolerance": {"source": "history"}}])

    assert "tolerances.0.tolerance.source" in refused.value.members["errors"]


def test_planning_is_audited_with_a_sentence(bench: Bench) -> None:
    session = bench.decide()

    event = Event.objects.get(action="session.planned")
    assert event.target == session.pk
    assert event.account_id == bench.owner.pk
    assert "planned a session of 4 trials on box" in event.sentence


def test_without_its_audit_event_a_plan_does_not_land(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "record", lambda *a, **k: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        bench.session()

    assert not TrialSession.objects.exists()
    assert not RunSheet.objects.exists()


def test_planning_never_consents(bench: Bench, mo: User, lab: Account) -> None:
    bench.decide()

    assert not Approval.objects.exclude(state="requested").exists()
    assert Trial.objects.filter(run_sheet__locked_at=None).count() == 4


def _replan(bench: Bench) -> TrialSession:
    plan = bench.plan(controls=[], candidates=[])
    return sessions.replan_round(round=bench.round, plan=plan, by=actor(bench.by), at=NOON)
