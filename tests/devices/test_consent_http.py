"""Consent over HTTP: who may, what is answered."""

from datetime import timedelta

import pytest
from django.utils import timezone

from devices.models import Approval
from hub.accounts.models import Account, Role, User
from hub.core.lifecycle import WrongState
from tests import factories
from tests.devices import factories as made
from tests.devices.factories import ERRANDS, KIND, Box


@pytest.fixture
def waiting(box: Box, ana: User) -> Approval:
    return made.requested(box.device, ana, at=timezone.now())


def act_on(approval: Approval, act: str, caller, body=None):
    path = f"/api/v1/approvals/{approval.pk}/{act}"
    return caller.post(path) if body is None else caller.post(path, body)


def test_consent_over_http_answers_428_409_and_200(waiting: Approval, ana: User) -> None:
    browser = factories.client(ana)

    without = act_on(waiting, "issue", browser)
    changed = act_on(waiting, "issue", browser, {"run_sheet_sha256": "0" * 64})
    given = act_on(waiting, "issue", browser, {"run_sheet_sha256": changed.json()["run_sheet_sha256"]})
    again = act_on(waiting, "issue", browser, {"run_sheet_sha256": changed.json()["run_sheet_sha256"]})

    assert (without.status_code, without.json()["type"]) == (428, "/problems/precondition-required")
    assert (changed.status_code, changed.json()["type"]) == (409, "/problems/run-sheet-changed")
    assert (given.status_code, given.json()["state"]) == (200, "issued")
    assert (again.status_code, again.json()["state"], again.json()["wanted"]) == (409, "issued", "issued")


@pytest.mark.parametrize("body", [{"run_sheet_sha256": "ABC"}, {"run_sheet_sha256": None}, {"sheet": "x"}])
def test_a_digest_of_another_form_is_422(waiting: Approval, ana: User, body) -> None:
    assert act_on(waiting, "issue", factories.client(ana), body).status_code == 422


@pytest.mark.parametrize("act", ["issue", "decline", "revoke"])
def test_who_may_not_decide_is_told_so_before_anything_is_read(
    waiting: Approval, lab: Account, ana: User, oto: User, eve: User, box: Box, act: str
) -> None:
    unreadable = {"nonsense": 1}
    callers = {
        404: factories.client(eve),
        403: factories.client(oto),
        401: factories.client(),
    }
    program = factories.key_client(factories.api_key(ana, account=lab))

    for status, caller in callers.items():
        assert act_on(waiting, act, caller, unreadable).status_code == status
    assert act_on(waiting, act, program, unreadable).status_code == 403
    assert box.post(f"/api/v1/approvals/{waiting.pk}/{act}", unreadable).status_code == 403


def test_a_stranger_is_answered_as_for_an_approval_that_is_not_there(waiting: Approval, eve: User) -> None:
    browser = factories.client(eve)

    for act in ("issue", "decline", "revoke", "withdraw"):
        real = browser.post(f"/api/v1/approvals/{waiting.pk}/{act}")
        none = browser.post(f"/api/v1/approvals/apr_nothing/{act}")
        assert (real.status_code, real.content) == (404, none.content)


def test_an_agent_withdraws_and_an_operator_does_not(
    waiting: Approval, lab: Account, ana: User, oto: User
) -> None:
    reader = factories.key_client(factories.api_key(ana, account=lab, scopes=("key:read",)))
    writer = factories.key_client(factories.api_key(ana, account=lab))

    assert act_on(waiting, "withdraw", factories.client(oto)).status_code == 403
    assert act_on(waiting, "withdraw", reader).status_code == 403
    withdrawn = act_on(waiting, "withdraw", writer, {"reason": "found a better one"})
    assert (withdrawn.status_code, withdrawn.json()["state"]) == (200, "withdrawn")
    assert withdrawn.json()["ended_reason"] == "found a better one"


def test_a_person_who_left_the_org_gives_no_consent(waiting: Approval, lab: Account, mo: User) -> None:
    browser = factories.client(mo)
    lab.memberships.filter(user=mo, role=Role.MEMBER).delete()

    assert act_on(waiting, "issue", browser).status_code == 404


def test_consent_over_http_needs_a_recent_sign_in(waiting: Approval, ana: User) -> None:
    browser = factories.client(ana)
    session = browser.session
    session["signed_in_at"] = (timezone.now() - timedelta(hours=13)).timestamp()
    session.save()

    answer = act_on(waiting, "issue", browser, {"run_sheet_sha256": made.digest_of(waiting)})

    assert (answer.status_code, answer.json()["type"]) == (403, "/problems/recent-sign-in-required")
    assert act_on(waiting, "decline", browser).status_code == 200


def test_there_is_no_way_to_consent_to_several_at_once() -> None:
    from devices.urls import operations

    issuing = [str(path.pattern) for path in operations if "issue" in str(path.pattern)]
    assert issuing == ["approvals/<str:approval_id>/issue"]


def test_the_kind_of_a_subject_has_one_handler() -> None:
    from devices import subjects

    with pytest.raises(RuntimeError):
        subjects.register(KIND, ERRANDS)


def test_each_state_is_refused_by_name_over_http(waiting: Approval, ana: User) -> None:
    browser = factories.client(ana)
    act_on(waiting, "decline", browser, {"reason": "not today"})

    refused = act_on(waiting, "withdraw", browser)

    assert refused.status_code == 409
    assert refused.json()["detail"] == "The approval is declined; it cannot become withdrawn."
    assert (refused.json()["state"], refused.json()["wanted"]) == ("declined", "withdrawn")
    assert WrongState.slug in refused.json()["type"]
