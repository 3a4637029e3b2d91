"""The verdict (C4-31, C4-32): a person's, once, on a candidate that ran; and the three things that follow."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from hub.accounts import actors
from hub.accounts.models import Role, User
from hub.accounts.permissions import PersonsOnly, RecentSignInNeeded, RoleForbidden
from hub.audit import services as audit
from hub.audit.models import Event
from hub.campaigns.models import Wake
from hub.campaigns.services import agents, lineage, rounds
from hub.campaigns.services.lineage import LineageEnded
from tests import factories
from tests.factories import NOON, actor
from tests.hub.campaigns import factories as campaigns
from tests.trials import factories as made
from tests.trials.factories import Bench
from trials import readings
from trials.models import Trial, Verdict
from trials.rules import RULES_VERSION
from trials.rules.verdicts import Asked
from trials.services import verdicts
from trials.services.verdicts import NoVerdict

pytestmark = pytest.mark.usefixtures("object_store")


@pytest.fixture
def candidate(bench: Bench) -> Trial:
    """A candidate that has run between two controls alike."""
    same = {"tilt": 1.0}
    return made.trials_of(made.whole_session(bench, same, {"tilt": 1.2}, same, candidates=[bench.good]))[1]


@pytest.fixture
def started(bench: Bench) -> Trial:
    """A candidate whose run has started, without any log, in a session whose control was declined."""
    control, candidate, _ = made.trials_of(bench.session(candidates=[bench.good]))
    bench.decline(control)
    bench.consent(candidate)
    bench.start(candidate)
    return candidate


def refusal(act: Callable[[], Any]) -> dict[str, Any]:
    with pytest.raises(NoVerdict) as refused:
        act()
    return refused.value.members


def test_c4_31_promote_puts_the_checkpoint_on_the_robot(bench: Bench, candidate: Trial) -> None:
    verdict = bench.judge(candidate, "promote")

    bench.campaign.refresh_from_db()
    assert bench.campaign.policy_on_robot == bench.good
    assert bench.campaign.policy_trial_id == candidate.pk
    assert verdict.replaces is None


def test_c4_31_its_numbers_are_the_next_sessions_baseline_and_no_earlier_ones(
    bench: Bench, candidate: Trial
) -> None:
    planned_before = bench.session(candidates=[bench.bad])
    bench.judge(candidate, "promote")

    planned_after = bench.session(candidates=[bench.bad])

    assert planned_before.baseline is None
    assert planned_after.baseline == {
        "trial": candidate.pk,
        "checkpoint": bench.good.pk,
        "summary": made.fresh(candidate).log.summary,
    }
    thresholds = {
        each["id"]: each.get("threshold")
        for each in made.trials_of(planned_after)[1].run_sheet.document["criteria"]
    }
    assert thresholds["tilt-vs-baseline"] == pytest.approx(1.2, abs=1e-3)


def test_c4_31_iterate_wakes_the_agents_with_verdict_and_summary(bench: Bench, candidate: Trial) -> None:
    agents.create_agent_session(campaign=bench.campaign, name="tuner", by=actor(bench.by), at=NOON)

    bench.judge(candidate, "iterate")

    payload = Wake.objects.get().payload
    assert payload["verdict"]["option"] == "iterate"
    assert payload["verdict"]["reason"] == "that is what the run showed"
    assert payload["checkpoint"] == {"id": bench.good.pk, "run": "walk-8", "step": 400}
    assert payload["summary"]["tilt_mean_deg"] == pytest.approx(1.2, abs=1e-3)
    assert payload["notes"] is None
    bench.good.refresh_from_db()
    assert bench.good.lineage_ended_at is None


def test_c4_31_stop_ends_the_lineage_and_no_round_resumes_from_it(bench: Bench, candidate: Trial) -> None:
    child = campaigns.checkpoint(bench.campaign, run="walk-9", step=1, parent=bench.good)

    bench.judge(candidate, "stop")

    for ended in (bench.good, child):
        ended.refresh_from_db()
        assert ended.lineage_ended_reason.endswith("that is what the run showed")
        with pytest.raises(LineageEnded):
            rounds.create_round(
                campaign=bench.campaign, content={"resumes_from": ended.pk}, by=actor(bench.by), at=NOON
            )


def test_c4_31_iterating_from_an_ended_lineage_is_refused(bench: Bench, candidate: Trial) -> None:
    lineage.end_lineage(checkpoint=bench.good, reason="it fell", by=actor(bench.by), at=NOON)

    assert refusal(lambda: bench.judge(candidate, "iterate"))["because"] == "lineage-ended"


def test_c4_32_a_control_takes_no_verdict(bench: Bench, candidate: Trial) -> None:
    control = made.trials_of(candidate.session)[0]

    assert refusal(lambda: bench.judge(control))["because"] == "control"


def test_c4_32_before_its_run_has_started_a_trial_takes_none(bench: Bench) -> None:
    trial = made.trials_of(bench.decide())[1]

    assert refusal(lambda: bench.judge(trial))["because"] == "not-started"


def test_c4_32_from_then_on_it_does(bench: Bench, started: Trial) -> None:
    assert bench.judge(started, "stop").option == "stop"


def test_c4_32_a_second_verdict_is_refused(bench: Bench, candidate: Trial) -> None:
    bench.judge(candidate, "iterate")

    assert refusal(lambda: bench.judge(candidate, "stop"))["because"] == "second-verdict"
    assert Verdict.objects.get().option == "iterate"


def test_without_a_campaign_there_is_nothing_to_promote_to(bench: Bench) -> None:
    session = made.whole_session(
        bench, {}, {}, {}, candidates=[bench.good], campaign=None, device=bench.device
    )

    said = refusal(lambda: bench.judge(made.trials_of(session)[1], "promote"))

    assert said["because"] == "no-campaign"


def test_while_the_bracket_does_not_hold_a_promotion_acknowledges_it(bench: Bench) -> None:
    session = made.whole_session(bench, {"tilt": 1.0}, {}, {"tilt": 4.0}, candidates=[bench.good])
    trial = made.trials_of(session)[1]
    assert refusal(lambda: bench.judge(trial, "promote"))["because"] == "bracket-does-not-hold"

    verdict = bench.judge(trial, "promote", acknowledge_bracket=True)

    assert verdict.bracket_acknowledged is True
    assert verdict.bracket["holds"] is False
    assert "did not hold, which was acknowledged" in Event.objects.get(action="trial.verdict").sentence


def test_an_acknowledgement_that_nothing_asked_for_is_not_kept(bench: Bench, candidate: Trial) -> None:
    assert bench.judge(candidate, "promote", acknowledge_bracket=True).bracket_acknowledged is False


def test_over_a_policy_promoted_meanwhile_it_names_what_it_replaces(bench: Bench, candidate: Trial) -> None:
    later = made.whole_session(bench, {}, {}, {}, candidates=[bench.bad], at=NOON + timedelta(hours=1))
    bench.judge(candidate, "promote")
    trial = made.trials_of(later)[1]
    said = refusal(lambda: bench.judge(trial, "promote"))
    assert (said["because"], said["current"]) == ("policy-changed", bench.good.pk)

    verdict = bench.judge(trial, "promote", replaces=bench.good.pk)

    assert verdict.replaces == bench.good
    assert "in place of walk-8 step 400" in Event.objects.filter(action="trial.verdict").latest("id").sentence


def test_criteria_bracket_and_the_rules_version_are_kept_as_they_stood(
    bench: Bench, candidate: Trial
) -> None:
    reading = readings.read_trial(made.fresh(candidate), at=NOON)

    verdict = bench.judge(candidate)

    verdict.refresh_from_db()
    assert verdict.criteria == reading.criteria
    assert verdict.bracket == reading.session.bracket
    assert verdict.rules_version == RULES_VERSION


def test_c4_32_a_key_never_decides(bench: Bench, candidate: Trial) -> None:
    key = factories.api_key(bench.by, account=bench.owner).key

    with pytest.raises(PersonsOnly):
        verdicts.give_verdict(
            trial=made.fresh(candidate), asked=Asked(option="stop"), reason="no", by=actors.key(key), at=NOON
        )


def test_an_operator_does_not_decide(bench: Bench, candidate: Trial, oto: User) -> None:
    with pytest.raises(RoleForbidden) as refused:
        _decide(candidate, by=oto)

    assert refused.value.members["role"] == Role.OPERATOR


def test_a_member_does(bench: Bench, candidate: Trial, mo: User) -> None:
    assert _decide(candidate, by=mo).by == mo


def test_a_verdict_needs_a_recent_sign_in(bench: Bench, candidate: Trial) -> None:
    with pytest.raises(RecentSignInNeeded):
        _decide(candidate, by=bench.by, signed_in_at=NOON - timedelta(hours=12))


def test_a_verdict_is_audited_with_a_sentence(bench: Bench, candidate: Trial) -> None:
    bench.judge(candidate, "promote")

    event = Event.objects.get(action="trial.verdict")
    assert event.sentence == (
        f"ana@lab.test promoted walk-8 step 400 after trial 2 of {candidate.session}: "
        "that is what the run showed"
    )
    assert event.target == candidate.pk
    assert event.data["option"] == "promote"


@pytest.mark.parametrize("option", ["promote", "iterate", "stop"])
def test_without_its_audit_event_a_verdict_does_not_land(
    bench: Bench, candidate: Trial, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    write = audit.record

    def all_but_the_verdict(action: str, **said: Any) -> Any:
        return 1 / 0 if action == "trial.verdict" else write(action, **said)

    monkeypatch.setattr(audit, "record", all_but_the_verdict)
    with pytest.raises(ZeroDivisionError):
        bench.judge(candidate, option)

    assert not Verdict.objects.exists()
    bench.campaign.refresh_from_db()
    bench.good.refresh_from_db()
    assert (bench.campaign.policy_on_robot, bench.good.lineage_ended_at) == (None, None)


def _decide(trial: Trial, *, by: User, signed_in_at: Any = NOON) -> Verdict:
    return verdicts.give_verdict(
        trial=made.fresh(trial),
        asked=Asked(option="stop"),
        reason="it fell",
        by=actor(by, signed_in_at=signed_in_at),
        at=NOON,
    )
