from typing import Any

import pytest
from rest_framework.test import APIClient

from hub.accounts.actors import SYSTEM
from hub.accounts.models import User
from hub.audit.models import Event
from hub.campaigns.models import Campaign, Round
from hub.campaigns.services import campaigns, lineage, rounds
from hub.core.lifecycle import WrongState
from tests import factories
from tests.factories import NOON
from tests.hub.campaigns import factories as made

State = Round.State


def draft(browser: APIClient, campaign: Campaign, **content: Any) -> Any:
    return browser.post(f"/api/v1/campaigns/{campaign.pk}/rounds", content)


def lock(browser: APIClient, round_id: str) -> Any:
    return browser.post(f"/api/v1/rounds/{round_id}/lock")


def test_a_round_is_drafted_measured_and_locked(browser: APIClient, campaign: Campaign) -> None:
    good, bad = made.checkpoint(campaign, step=700), made.checkpoint(campaign, step=800)
    made_ = draft(browser, campaign, gates=made.GATES).json()
    results = [made.result(good), made.result(bad, tilt=2.5)]

    changed = browser.patch(f"/api/v1/rounds/{made_['id']}", {"results": results}).json()
    locked = lock(browser, made_["id"]).json()

    assert (made_["number"], made_["state"]) == (1, "draft")
    assert [each["sim"] for each in changed["results"]] == [None, None]
    assert (locked["state"], locked["gates"]) == ("locked", made.GATES)
    assert locked["results"][0] == {
        "checkpoint": good.pk,
        "run": "walk-7",
        "step": 700,
        "seeds_run": 16,
        "seeds_upright": 16,
        "measured": {"tilt": 1.0, "upright": 1.0},
        "sim": {
            "verdict": "PASS",
            "gates_passed": 2,
            "gates": 2,
            "seeds_upright": 16,
            "seeds_run": 16,
        },
    }
    assert locked["results"][1]["sim"]["verdict"] == "FAIL"
    assert browser.get(f"/api/v1/rounds/{made_['id']}").json() == locked


def test_rounds_are_numbered_one_after_the_other(browser: APIClient, campaign: Campaign, ana: User) -> None:
    draft(browser, campaign)
    draft(browser, made.campaign(ana.account, name="other"))

    assert draft(browser, campaign).json()["number"] == 2


def test_a_gate_without_a_measurement_is_shown_and_does_not_pass(
    browser: APIClient, campaign: Campaign
) -> None:
    result = {**made.result(made.checkpoint(campaign)), "measured": {"tilt": 1.0}}
    the_round = made.round_of(campaign, result)

    said = browser.get(f"/api/v1/rounds/{the_round.pk}").json()["results"][0]

    assert said["measured"] == {"tilt": 1.0, "upright": None}
    assert (said["sim"]["verdict"], said["sim"]["gates_passed"]) == ("FAIL", 1)


def test_a_patch_leaves_what_it_does_not_name(browser: APIClient, campaign: Campaign) -> None:
    the_round = made.round_of(campaign, made.result(made.checkpoint(campaign)), is_locked=False)

    said = browser.patch(
        f"/api/v1/rounds/{the_round.pk}", {"gates": [made.GATES[0], made.GATES[1]][::-1]}
    ).json()

    assert [gate["key"] for gate in said["gates"]] == ["upright", "tilt"]
    assert len(said["results"]) == 1


def test_saying_what_a_draft_says_already_leaves_no_event(browser: APIClient, campaign: Campaign) -> None:
    result = made.result(made.checkpoint(campaign))
    the_round = made.round_of(campaign, result, is_locked=False)

    body = {"gates": made.GATES, "results": [result], "resumes_from": None}
    assert browser.patch(f"/api/v1/rounds/{the_round.pk}", body).status_code == 200

    assert not Event.objects.filter(action="round.changed").exists()


def test_a_gate_cannot_leave_while_it_is_measured(browser: APIClient, campaign: Campaign) -> None:
    the_round = made.round_of(campaign, made.result(made.checkpoint(campaign)), is_locked=False)

    response = browser.patch(f"/api/v1/rounds/{the_round.pk}", {"gates": made.GATES[:1]})

    assert response.status_code == 422
    assert "results.0.measured.upright" in response.json()["errors"]


@pytest.mark.parametrize(
    ("gate", "path"),
    [
        ({"op": "=<"}, "gates.0.op"),
        ({"op": "<=control"}, "gates.0.op"),
        ({"threshold": "2"}, "gates.0.threshold"),
        ({"threshold": None}, "gates.0.threshold"),
        ({"conditions": {"seeds": [1]}}, "gates.0.conditions.seeds"),
        ({"weight": 2}, "gates.0.weight"),
        ({"key": ""}, "gates.0.key"),
    ],
)
def test_a_faulty_gate_is_refused_by_its_path(
    browser: APIClient, campaign: Campaign, gate: dict[str, Any], path: str
) -> None:
    response = draft(browser, campaign, gates=[{**made.GATES[0], **gate}])

    assert response.status_code == 422
    assert set(response.json()["errors"]) == {path}
    assert not Round.objects.exists()


def test_results_are_of_verified_checkpoints_of_the_campaign(
    browser: APIClient, campaign: Campaign, ana: User
) -> None:
    elsewhere = made.checkpoint(made.campaign(ana.account, name="other"))

    response = draft(browser, campaign, gates=made.GATES, results=[made.result(elsewhere)])

    assert response.status_code == 422
    assert set(response.json()["errors"]) == {"results.0.checkpoint"}


@pytest.mark.parametrize("content", [{"results": []}, {"gates": []}])
def test_a_round_without_gates_or_results_is_not_locked(
    browser: APIClient, campaign: Campaign, content: dict[str, Any]
) -> None:
    result = {**made.result(made.checkpoint(campaign)), "measured": {}}
    whole = {"gates": made.GATES, "results": [result]}
    round_id = draft(browser, campaign, **{**whole, **content}).json()["id"]

    response = lock(browser, round_id)

    assert response.status_code == 409
    assert response.json()["type"].endswith("/round-not-ready")
    assert browser.get(f"/api/v1/rounds/{round_id}").json()["state"] == "draft"


def test_a_locked_round_does_not_change(browser: APIClient, campaign: Campaign) -> None:
    the_round = made.round_of(campaign, made.result(made.checkpoint(campaign)))

    changed = browser.patch(f"/api/v1/rounds/{the_round.pk}", {"gates": []})
    again = lock(browser, the_round.pk)

    for response in (changed, again):
        assert response.status_code == 409
        assert response.json()["type"].endswith("/wrong-state")
        assert response.json()["state"] == "locked"


def test_an_agent_drafts_and_never_locks(ana: User, campaign: Campaign) -> None:
    program = factories.key_client(factories.api_key(ana))
    checkpoint = made.checkpoint(campaign)

    drafted = draft(program, campaign, gates=made.GATES, results=[made.result(checkpoint)])
    locked = lock(program, drafted.json()["id"])

    assert drafted.status_code == 201
    assert locked.status_code == 403
    assert locked.json()["type"].endswith("/persons-only")


def test_a_round_resumes_from_a_checkpoint_of_its_campaign(browser: APIClient, campaign: Campaign) -> None:
    checkpoint = made.checkpoint(campaign)

    drafted = draft(browser, campaign, resumes_from=checkpoint.pk).json()
    cleared = browser.patch(f"/api/v1/rounds/{drafted['id']}", {"resumes_from": None}).json()

    assert (drafted["resumes_from"], cleared["resumes_from"]) == (checkpoint.pk, None)


def test_no_round_resumes_from_a_checkpoint_that_is_not_there(browser: APIClient, campaign: Campaign) -> None:
    response = draft(browser, campaign, resumes_from="ckp_nowhere")

    assert response.status_code == 422
    assert "resumes_from" in response.json()["errors"]


def test_under_the_rule_no_round_resumes_from_a_fail(browser: APIClient, campaign: Campaign) -> None:
    failed = made.checkpoint(campaign)
    made.round_of(campaign, made.result(failed, tilt=9.0))

    response = draft(browser, campaign, resumes_from=failed.pk)

    assert response.status_code == 409
    assert response.json()["type"].endswith("/failed-in-simulation")
    assert response.json()["checkpoint"] == failed.pk


def test_without_the_rule_a_fail_may_be_resumed_from(browser: APIClient, ana: User) -> None:
    campaign = made.campaign(ana.account, fail_ends_lineage=False)
    failed = made.checkpoint(campaign)
    made.round_of(campaign, made.result(failed, tilt=9.0))

    assert draft(browser, campaign, resumes_from=failed.pk).status_code == 201


def test_a_fail_counts_only_once_its_gates_are_locked(browser: APIClient, campaign: Campaign) -> None:
    failing = made.checkpoint(campaign)
    made.round_of(campaign, made.result(failing, tilt=9.0), is_locked=False)

    assert draft(browser, campaign, resumes_from=failing.pk).status_code == 201


def test_the_newest_locked_round_has_the_word_on_a_checkpoint(browser: APIClient, campaign: Campaign) -> None:
    checkpoint = made.checkpoint(campaign)
    made.round_of(campaign, made.result(checkpoint, tilt=9.0))
    made.round_of(campaign, made.result(checkpoint, tilt=1.0))

    assert draft(browser, campaign, resumes_from=checkpoint.pk).status_code == 201
    sims = browser.get(f"/api/v1/checkpoints/{checkpoint.pk}").json()["sims"]
    assert [(each["number"], each["sim"]["verdict"]) for each in sims] == [(2, "PASS"), (1, "FAIL")]


def test_no_round_resumes_from_an_ended_lineage_whatever_the_rule(browser: APIClient, ana: User) -> None:
    campaign = made.campaign(ana.account, fail_ends_lineage=False)
    parent = made.checkpoint(campaign, step=400)
    child = made.checkpoint(campaign, step=700, parent=parent)
    lineage.end_lineage(checkpoint=parent, reason="It fell twice.", by=SYSTEM, at=NOON)

    response = draft(browser, campaign, resumes_from=child.pk)

    assert response.status_code == 409
    assert response.json()["type"].endswith("/lineage-ended")
    assert "It fell twice." in response.json()["detail"]


def test_a_parent_that_ended_meanwhile_is_seen_when_the_round_is_locked(
    browser: APIClient, campaign: Campaign
) -> None:
    parent, child = made.checkpoint(campaign, step=400), made.checkpoint(campaign, step=700)
    the_round = made.round_of(campaign, made.result(child), resumes_from=parent, is_locked=False)
    lineage.end_lineage(checkpoint=parent, reason="It fell.", by=SYSTEM, at=NOON)

    response = lock(browser, the_round.pk)

    assert response.status_code == 409
    assert response.json()["type"].endswith("/lineage-ended")


def test_a_round_is_decided_once_and_the_second_is_told_the_session(campaign: Campaign) -> None:
    the_round = made.round_of(campaign, made.result(made.checkpoint(campaign)))
    rounds.mark_decided(round=the_round, session_id="ses_1", by=SYSTEM, at=NOON)

    with pytest.raises(rounds.AlreadyDecided) as refused:
        rounds.mark_decided(round=the_round, session_id="ses_2", by=SYSTEM, at=NOON)

    assert refused.value.members["session"] == "ses_1"
    the_round.refresh_from_db()
    assert (the_round.state, the_round.session_id, the_round.decided_by) == ("decided", "ses_1", "the hub")


def test_a_draft_is_not_decided(campaign: Campaign) -> None:
    the_round = made.round_of(campaign, made.result(made.checkpoint(campaign)), is_locked=False)

    with pytest.raises(WrongState, match="draft; it cannot become decided"):
        rounds.mark_decided(round=the_round, session_id="ses_1", by=SYSTEM, at=NOON)


def test_a_decided_round_names_its_session(browser: APIClient, campaign: Campaign) -> None:
    the_round = made.round_of(campaign, made.result(made.checkpoint(campaign)))
    before = browser.get(f"/api/v1/rounds/{the_round.pk}").json()
    rounds.mark_decided(round=the_round, session_id="ses_1", by=SYSTEM, at=NOON)

    after = browser.get(f"/api/v1/rounds/{the_round.pk}").json()

    assert (before["session"], before["decided_by"]) == (None, None)
    assert (after["session"], after["decided_by"]) == ("ses_1", "the hub")


def test_what_was_not_measured_in_a_round_has_no_verdict_there(campaign: Campaign) -> None:
    measured, other = made.checkpoint(campaign, step=700), made.checkpoint(campaign, step=800)
    the_round = made.round_of(campaign, made.result(measured, tilt=None))

    sim, values = rounds.sim_of(the_round, measured)

    assert sim is not None
    assert (sim["verdict"], values) == ("FAIL", {"tilt": None, "upright": 1.0})
    assert rounds.sim_of(the_round, other) == (None, None)


@pytest.mark.parametrize("start", State)
@pytest.mark.parametrize("end", State)
def test_a_round_goes_from_draft_to_locked_to_decided_and_no_other_way(start: str, end: str) -> None:
    the_round = Round(state=start)
    if (start, end) in {(State.DRAFT, State.LOCKED), (State.LOCKED, State.DECIDED)}:
        the_round.move_to(end)
        assert the_round.state == end
    else:
        with pytest.raises(WrongState):
            the_round.move_to(end)


def test_the_record_of_a_lock_says_how_many_pass(campaign: Campaign) -> None:
    good, bad = made.checkpoint(campaign, step=700), made.checkpoint(campaign, step=800)
    made.round_of(campaign, made.result(good), made.result(bad, tilt=3.0))

    event = Event.objects.get(action="round.locked")
    assert event.sentence == "the hub locked round 1 of walk: 2 gates, 1 of 2 pass."


def test_a_promoted_checkpoint_can_be_measured_again(browser: APIClient, campaign: Campaign) -> None:
    control = made.checkpoint(campaign)
    campaigns.put_on_robot(campaign=campaign, checkpoint=control, trial_id="trl_1", by=SYSTEM, at=NOON)

    drafted = draft(
        browser, campaign, gates=made.GATES, results=[made.result(control)], resumes_from=control.pk
    )

    assert drafted.status_code == 201
