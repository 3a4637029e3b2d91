"""Sessions, trials and logs over HTTP: who sees what, what is asked and answered."""

from typing import Any

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries
from rest_framework.test import APIClient

from hub.accounts.models import User
from tests import factories
from tests.devices import factories as devices
from tests.factories import NOON
from tests.trials import factories as made
from tests.trials.factories import MINUTE, Bench
from trials.models import Trial, TrialSession

API = "/api/v1"


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
