"""Ways into planning over HTTP: who may, how checkpoints are named, whose device counts."""

from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from hub.accounts.models import User
from tests import factories
from tests.devices import factories as devices
from tests.hub.campaigns import factories as campaigns
from tests.trials import factories as made
from tests.trials.factories import Bench
from trials.models import Trial, TrialSession

API = "/api/v1"


def shortlist(bench: Bench, **said: Any) -> dict[str, Any]:
    return {
        "shortlist": [bench.good.pk, {"run": "walk-8", "step": 800}],
        "controls": [{"run": "walk-7", "step": 700}],
        "reason": made.REASON,
        **said,
    }


def picks(bench: Bench, **said: Any) -> dict[str, Any]:
    return {
        "campaign": bench.campaign.pk,
        "candidates": [bench.good.pk],
        "controls": [bench.control.pk],
        "reason": made.REASON,
        **said,
    }


def test_c4_08_a_person_decides_a_round_and_gets_the_planned_session(
    bench: Bench, browser: APIClient
) -> None:
    said = browser.post(f"{API}/rounds/{bench.round.pk}/decide", shortlist(bench))

    assert said.status_code == 201, said.content
    session = said.json()
    assert [(each["role"], each["checkpoint"]["step"]) for each in session["trials"]] == [
        ("control", 700),
        ("candidate", 400),
        ("candidate", 800),
        ("control", 700),
    ]
    assert {each["status"] for each in session["trials"]} == {"awaiting_approval"}
    assert (session["bracket"]["holds"], session["bracket"]["reason"]) == (None, "waiting")
    assert session["device"] == bench.device.pk


def test_c4_08_an_agent_shortlists_and_cannot_decide(bench: Bench, agent: APIClient) -> None:
    decided = agent.post(f"{API}/rounds/{bench.round.pk}/decide", shortlist(bench))
    listed = agent.post(f"{API}/rounds/{bench.round.pk}/shortlist", shortlist(bench))

    assert decided.status_code == 403
    assert listed.status_code == 201
    assert listed.json()["planned_by"].startswith("key thk_")


def test_a_person_goes_by_decide_and_not_by_the_agents_way(bench: Bench, browser: APIClient) -> None:
    assert browser.post(f"{API}/rounds/{bench.round.pk}/shortlist", shortlist(bench)).status_code == 403


def test_c4_04_a_second_shortlist_names_the_session(
    bench: Bench, browser: APIClient, session: TrialSession
) -> None:
    said = browser.post(f"{API}/rounds/{bench.round.pk}/decide", shortlist(bench))

    assert said.status_code == 409
    assert said.json()["session"] == session.pk


def test_c4_04_explicit_picks_are_planned_for_a_campaign(bench: Bench, agent: APIClient) -> None:
    said = agent.post(f"{API}/trial-sessions", picks(bench))

    assert said.status_code == 201, said.content
    assert said.json()["account"] == bench.owner.pk
    assert said.json()["round"] is None


def test_c4_04_without_campaign_and_device_there_is_no_owner(bench: Bench, browser: APIClient) -> None:
    said = browser.post(f"{API}/trial-sessions", picks(bench, campaign=None))

    assert said.status_code == 422
    assert list(said.json()["errors"]) == ["campaign"]


def test_c4_04_a_round_called_off_supplies_its_shortlist_again(
    bench: Bench, browser: APIClient, session: TrialSession
) -> None:
    body = {"round": bench.round.pk, "reason": "once more"}
    assert browser.post(f"{API}/trial-sessions", body).status_code == 409
    assert browser.post(f"{API}/trial-sessions/{session.pk}/cancel").status_code == 200

    said = browser.post(f"{API}/trial-sessions", body)

    assert said.status_code == 201, said.content
    assert (said.json()["round"], len(said.json()["trials"])) == (bench.round.pk, 4)


def test_a_round_supplies_the_picks_and_takes_none_beside_them(bench: Bench, browser: APIClient) -> None:
    said = browser.post(f"{API}/trial-sessions", picks(bench, round=bench.round.pk))

    assert said.status_code == 422
    assert list(said.json()["errors"]) == ["round"]


@pytest.mark.parametrize("field", ["candidates", "controls"])
def test_c4_04_a_checkpoint_that_the_caller_cannot_read_is_404(
    bench: Bench, browser: APIClient, eve: User, field: str
) -> None:
    foreign = campaigns.checkpoint(campaigns.campaign(eve.account, name="hers"), step=1)

    said = browser.post(f"{API}/trial-sessions", picks(bench, **{field: [foreign.pk]}))
    unknown = browser.post(f"{API}/trial-sessions", picks(bench, **{field: ["ckp_nothing"]}))

    assert (said.status_code, unknown.status_code) == (404, 404)
    assert said.json()["detail"].replace(foreign.pk, "") == unknown.json()["detail"].replace(
        "ckp_nothing", ""
    )
    assert not TrialSession.objects.exists()


def test_c4_05_a_run_and_step_of_two_campaigns_has_to_be_named_by_id(
    bench: Bench, browser: APIClient
) -> None:
    other = campaigns.campaign(bench.owner, name="other")
    campaigns.checkpoint(other, step=700)
    body = picks(bench, campaign=None, device_id=bench.device.pk, controls=[{"run": "walk-7", "step": 700}])

    said = browser.post(f"{API}/trial-sessions", body)

    assert said.status_code == 422
    assert list(said.json()["errors"]) == ["controls.0"]


@pytest.mark.parametrize("name", [{"run": "walk-7"}, {"run": "walk-7", "step": "700"}, 700, True, ""])
def test_c4_05_a_name_of_another_shape_is_422(bench: Bench, browser: APIClient, name: Any) -> None:
    said = browser.post(f"{API}/trial-sessions", picks(bench, controls=[name]))

    assert said.status_code == 422
    assert list(said.json()["errors"]) == ["controls.0"]


def test_c4_07_a_device_of_another_owner_is_404_also_when_the_caller_sees_it(
    bench: Bench, browser: APIClient, ana: User
) -> None:
    own = devices.box(ana.account, ana, name="at home")

    said = browser.post(f"{API}/trial-sessions", picks(bench, device_id=own.device.pk))

    assert said.status_code == 404
    assert not TrialSession.objects.exists()


def test_c4_09_a_device_is_named_later_and_again(bench: Bench, browser: APIClient) -> None:
    devices.box(bench.owner, bench.by, robot=bench.campaign.robot, name="second")
    session = bench.decide(at=timezone.now())
    path, body = f"{API}/trial-sessions/{session.pk}/device", {"device_id": bench.device.pk}

    first, again = browser.post(path, body), browser.post(path, body)

    assert (first.status_code, again.status_code) == (200, 200)
    assert [each["approval"]["id"] for each in first.json()["trials"]] == [
        each["approval"]["id"] for each in again.json()["trials"]
    ]


def test_an_operator_reads_and_does_not_plan(bench: Bench, trial: Trial, oto: User) -> None:
    operator = factories.client(oto)

    assert operator.get(f"{API}/trials/{trial.pk}").status_code == 200
    assert operator.post(f"{API}/trial-sessions", picks(bench)).status_code == 403
    assert operator.patch(f"{API}/trials/{trial.pk}/run-sheet", {"kd_scale": 1.1}).status_code == 403
    assert operator.post(f"{API}/trial-sessions/{trial.session_id}/cancel").status_code == 403
