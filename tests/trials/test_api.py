"""Sessions and trials over HTTP: who sees and may what, what is asked and answered."""

from typing import Any

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries
from rest_framework.test import APIClient

from hub.accounts.models import User
from tests import factories
from tests.devices import factories as devices
from tests.factories import NOON
from tests.hub.campaigns import factories as campaigns
from tests.trials import factories as made
from tests.trials.factories import MINUTE, Bench
from trials.models import Trial, TrialSession

API = "/api/v1"


@pytest.fixture
def browser(ana: User) -> APIClient:
    return factories.client(ana)


@pytest.fixture
def agent(bench: Bench) -> APIClient:
    return factories.key_client(factories.api_key(bench.by, account=bench.owner))


@pytest.fixture
def stranger(eve: User) -> APIClient:
    return factories.client(eve)


@pytest.fixture
def session(bench: Bench) -> TrialSession:
    """Planned just now, so that nothing has run out."""
    return bench.decide(at=timezone.now())


@pytest.fixture
def trial(session: TrialSession) -> Trial:
    return made.trials_of(session)[0]


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


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("post", "rounds/{round}/decide", {}),
        ("get", "trial-sessions/{session}", None),
        ("post", "trial-sessions/{session}/cancel", None),
        ("post", "trial-sessions/{session}/device", {"device_id": "dev_1"}),
        ("get", "trials/{trial}", None),
        ("get", "trials/{trial}/run-sheet", None),
        ("patch", "trials/{trial}/run-sheet", {"kd_scale": 1.1}),
        ("get", "trials/{trial}/log/series", None),
        ("post", "trials/{trial}/verdict", {"option": "stop", "reason": "no"}),
    ],
)
def test_a_stranger_learns_nothing(
    stranger: APIClient, trial: Trial, bench: Bench, method: str, path: str, body: Any
) -> None:
    there = path.format(round=bench.round.pk, session=trial.session_id, trial=trial.pk)
    nowhere = path.format(round="rnd_0", session="ses_0", trial="trl_0")

    said, unknown = (getattr(stranger, method)(f"{API}/{each}", body) for each in (there, nowhere))

    assert (said.status_code, unknown.status_code) == (404, 404)
    assert said.json() == unknown.json()


def test_c4_01_lists_show_what_my_accounts_own_newest_first(
    bench: Bench, browser: APIClient, stranger: APIClient, mo: User
) -> None:
    first, second = bench.session(), bench.session()

    said = browser.get(f"{API}/trial-sessions").json()

    assert [each["id"] for each in said["items"]] == [second.pk, first.pk]
    member = factories.client(mo).get(f"{API}/trial-sessions").json()
    assert [each["id"] for each in member["items"]] == [second.pk, first.pk]
    assert stranger.get(f"{API}/trial-sessions").json() == {"items": [], "next": None}
    assert stranger.get(f"{API}/trials?session={first.pk}").json()["items"] == []


def test_trials_are_found_by_status_session_campaign_and_approval(
    bench: Bench, browser: APIClient, session: TrialSession, trial: Trial
) -> None:
    bench.consent(trial, at=timezone.now())
    other = bench.session(at=timezone.now())

    def found(query: str) -> list[str]:
        return [each["id"] for each in browser.get(f"{API}/trials?{query}").json()["items"]]

    assert found("status=ready") == [trial.pk]
    assert found("status=needs_verdict") == []
    assert len(found(f"session={other.pk}")) == 4
    assert len(found(f"campaign={bench.campaign.pk}")) == 8
    assert found(f"approval_id={trial.approval_id}") == [trial.pk]
    assert browser.get(f"{API}/trials?status=lost").status_code == 422


def test_a_trial_is_found_by_an_approval_that_another_has_taken_the_place_of(
    bench: Bench, browser: APIClient, session: TrialSession, trial: Trial
) -> None:
    bench.decline(trial, at=timezone.now())
    bench.file(session, at=timezone.now())

    found = browser.get(f"{API}/trials?approval_id={trial.approval_id}").json()["items"]

    assert [each["id"] for each in found] == [trial.pk]
    assert found[0]["approval"]["id"] != trial.approval_id


def test_a_device_sees_its_own_trials_and_no_others(bench: Bench, trial: Trial) -> None:
    other = devices.box(bench.owner, bench.by, robot=bench.campaign.robot, name="second")

    own = bench.box.get(f"{API}/trials?approval_id={trial.approval_id}")

    assert [each["id"] for each in own.json()["items"]] == [trial.pk]
    assert bench.box.get(f"{API}/trials/{trial.pk}").status_code == 200
    assert other.get(f"{API}/trials/{trial.pk}").status_code == 404
    assert other.get(f"{API}/trials").json()["items"] == []


@pytest.mark.usefixtures("object_store")
def test_a_trial_answers_with_everything_it_is_judged_by(bench: Bench, browser: APIClient) -> None:
    session = made.whole_session(bench, {"tilt": 1.0}, {"tilt": 1.2}, {"tilt": 4.0}, candidates=[bench.good])
    trial = made.trials_of(session)[1]

    said = browser.get(f"{API}/trials/{trial.pk}").json()

    assert (said["status"], said["position"], said["of"]) == ("needs_verdict", 2, 3)
    assert (said["stages"][0]["name"], said["stages"][0]["status"]) == ("hang", "done")
    assert said["log"]["hub_check"]["state"] == "agrees"
    assert said["log"]["summary"]["judged_stage"] == "floor"
    assert said["sim"]["verdict"] == "PASS"
    assert said["bracket"]["holds"] is False
    assert "decides nothing" in said["bracket_says"]
    assert {each["decides"] for each in said["comparisons"]} == {False}
    assert said["clock"] == {
        "started_at": "2026-01-05T12:11:00.000Z",
        "stopped_at": "2026-01-05T12:12:00.000Z",
        "clock_s": 600.0,
        "waited_s": 540.0,
    }


@pytest.mark.usefixtures("object_store")
def test_recorded_files_are_downloaded_by_people_and_not_by_devices(
    bench: Bench, browser: APIClient, session: TrialSession, trial: Trial
) -> None:
    bench.run(trial, at=timezone.now())
    bench.log(trial, at=timezone.now())

    said = browser.get(f"{API}/trials/{trial.pk}").json()["log"]["files"]
    to_the_box = bench.box.get(f"{API}/trials/{trial.pk}").json()["log"]["files"]

    status, headers, body = made.get(said[0]["url"])
    assert status == 200
    assert headers["Content-Disposition"] == 'attachment; filename="01-hang.csv"'
    assert body == made.csv(trial)
    assert [file["url"] for file in to_the_box] == [None, None]


def test_a_trial_without_a_log_awaits_one(browser: APIClient, trial: Trial) -> None:
    said = browser.get(f"{API}/trials/{trial.pk}").json()

    assert said["log"] == {
        "id": None,
        "state": "awaiting",
        "detail": None,
        "recorded_at": None,
        "kid": None,
        "files": [],
        "summary": None,
        "hub_check": None,
    }
    assert {each["result"] for each in said["criteria"]} == {"pending"}


def test_the_run_sheet_is_read_changed_and_locked_over_http(
    bench: Bench, browser: APIClient, agent: APIClient, trial: Trial
) -> None:
    path = f"{API}/trials/{trial.pk}/run-sheet"
    before = browser.get(path).json()

    changed = agent.patch(path, {"kd_scale": 1.1})
    assert changed.status_code == 200, changed.content
    assert changed.json()["digest"] != before["digest"]
    issued = browser.post(
        f"{API}/approvals/{trial.approval_id}/issue", {"run_sheet_sha256": changed.json()["digest"]}
    )
    assert issued.status_code == 200, issued.content

    refused = browser.patch(path, {"kd_scale": 1.2})
    assert (refused.status_code, refused.json()["type"]) == (409, "/problems/run-sheet-locked")
    assert browser.get(path).json()["changeable"] == []


@pytest.mark.parametrize(
    ("body", "field"),
    [({"kd_scale": None}, "kd_scale"), ({"kd_scal": 1.1}, "kd_scal"), ({"predictions": []}, "predictions")],
)
def test_a_change_that_may_not_be_is_422(
    browser: APIClient, trial: Trial, body: dict[str, Any], field: str
) -> None:
    said = browser.patch(f"{API}/trials/{trial.pk}/run-sheet", body)

    assert said.status_code == 422
    assert list(said.json()["errors"]) == [field]


def test_a_whole_sheet_may_be_sent_back_as_it_is(browser: APIClient, trial: Trial) -> None:
    path = f"{API}/trials/{trial.pk}/run-sheet"
    before = browser.get(path).json()

    said = browser.patch(path, before["document"])

    assert said.status_code == 200, said.content
    assert said.json()["digest"] == before["digest"]


@pytest.mark.usefixtures("object_store")
def test_a_box_uploads_and_records_its_log_over_http(bench: Bench, trial: Trial) -> None:
    bench.run(trial, at=timezone.now())
    content = made.stage_files(trial)
    opened = bench.box.post(
        f"{API}/trials/{trial.pk}/log/uploads", {"files": [file.declared for file in content]}
    )
    assert opened.status_code == 201, opened.content
    for file, upload in zip(content, opened.json()["files"], strict=True):
        assert made.put(upload["url"], upload["headers"], file.content) == 200
    envelope = bench.uploaded(trial, content)

    recorded = bench.box.post(f"{API}/trials/{trial.pk}/log", envelope)
    again = bench.box.post(f"{API}/trials/{trial.pk}/log", envelope)

    assert recorded.status_code == 201, recorded.content
    assert recorded.json()["state"] == "uploaded"
    assert (again.status_code, again.json()["same"]) == (409, True)
    assert again.json()["record"]["id"] == recorded.json()["id"]


def test_nobody_but_the_box_reports_a_log(
    bench: Bench, browser: APIClient, agent: APIClient, trial: Trial
) -> None:
    for caller in (browser, agent):
        assert caller.post(f"{API}/trials/{trial.pk}/log", bench.statement(trial)).status_code == 403
        assert caller.post(f"{API}/trials/{trial.pk}/log/uploads", {"files": []}).status_code == 403


def test_c4_32_a_person_gives_the_verdict_and_a_key_cannot(
    bench: Bench, browser: APIClient, agent: APIClient
) -> None:
    control, candidate, *_ = made.trials_of(bench.decide(at=timezone.now()))
    bench.decline(control, at=timezone.now())
    bench.run(candidate, at=timezone.now())
    path, body = f"{API}/trials/{candidate.pk}/verdict", {"option": "stop", "reason": "it fell"}

    by_key, first, second = agent.post(path, body), browser.post(path, body), browser.post(path, body)

    assert (by_key.status_code, first.status_code, second.status_code) == (403, 201, 409)
    assert first.json()["by"] == "ana@lab.test"
    assert (second.json()["type"], second.json()["because"]) == (
        "/problems/trial-takes-no-verdict",
        "second-verdict",
    )


@pytest.mark.parametrize(
    "body",
    [
        {"option": "stop"},
        {"option": "stop", "reason": ""},
        {"option": "stop", "reason": "   "},
        {"option": "maybe", "reason": "?"},
        {"reason": "?"},
        {"option": "stop", "reason": "no", "replaces": "ckp_1"},
        {"option": "promote", "reason": "yes", "acknowledge_bracket": "true"},
    ],
)
def test_a_verdict_names_its_option_and_its_reason(
    browser: APIClient, session: TrialSession, body: dict[str, Any]
) -> None:
    candidate = made.trials_of(session)[1]

    assert browser.post(f"{API}/trials/{candidate.pk}/verdict", body).status_code == 422


@pytest.mark.usefixtures("object_store")
def test_a_trial_takes_as_many_queries_in_a_long_session_as_in_a_short_one(
    bench: Bench, browser: APIClient, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    short = made.whole_session(bench, {}, {}, {}, candidates=[bench.good])
    long = made.whole_session(bench, {}, {}, {}, {}, at=NOON + 60 * MINUTE)
    counts = [
        _queries(browser, f"{API}/{path}")
        for session in (short, long)
        for path in (f"trials/{made.trials_of(session)[1].pk}", f"trial-sessions/{session.pk}")
    ]

    assert counts[0] == counts[2] <= 8
    assert counts[1] == counts[3] <= 8


@pytest.mark.parametrize("path", ["trials", "trial-sessions"])
def test_a_list_takes_as_many_queries_for_many_as_for_few(
    bench: Bench, browser: APIClient, path: str
) -> None:
    bench.session()
    few = _queries(browser, f"{API}/{path}")
    for _ in range(3):
        bench.session()

    assert _queries(browser, f"{API}/{path}") == few <= 6


def _queries(browser: APIClient, path: str) -> int:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    browser.get(path)
    with CaptureQueriesContext(connection) as captured:
        assert browser.get(path).status_code == 200
    return len(captured)
