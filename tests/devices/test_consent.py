"""Asking for consent and giving it: one person, one run, the sheet they saw."""

import json
from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone
from nacl.signing import SigningKey

from devices import keys
from devices.models import Approval, Device
from devices.services import approvals, consent, devices
from devices.services.consent import (
    AskedAlready,
    ContractNotAccepted,
    DeviceNotActive,
    DigestMissing,
    SelfApprovalForbidden,
    SheetChanged,
)
from driver.wire import canonical, signatures
from driver.wire.token import TokenRefused, verify_token
from hub.accounts.models import Account, Role, User
from hub.accounts.permissions import PersonsOnly, RecentSignInNeeded, RoleForbidden
from hub.audit.models import Event
from hub.campaigns.services.lineage import LineageEnded, end_lineage
from hub.core.lifecycle import WrongState
from tests import factories
from tests.devices import factories as made
from tests.devices.factories import ERRANDS, KIND, Box
from tests.factories import NOON
from tests.hub.campaigns import factories as campaigns
from tests.races import at_once


def issue(approval: Approval, by: User, *, at=NOON, digest: str | None = None, signed_in_at=None) -> Approval:
    return consent.issue_approval(
        approval=approval,
        run_sheet_sha256=digest or made.digest_of(approval),
        by=factories.actor(by, signed_in_at=signed_in_at or at),
        at=at,
    )


# Asking


def test_a_request_says_what_it_is_about_and_pins_the_checkpoint(box: Box, ana: User) -> None:
    approval = made.requested(box.device, ana)

    assert approval.state == "requested"
    assert approval.about == f"the errand with {approval.checkpoint}"
    assert approval.onnx_sha256 == approval.checkpoint.onnx_sha256
    assert approval.token == ""


def test_nobody_asks_twice_for_one_thing_at_a_time(box: Box, ana: User) -> None:
    first = made.requested(box.device, ana)

    with pytest.raises(AskedAlready) as refused:
        made.requested(box.device, ana, subject_id=first.subject_id)

    assert refused.value.members["approval"] == first.pk


def test_what_ended_without_a_start_is_asked_for_again(box: Box, ana: User) -> None:
    first = made.requested(box.device, ana)
    approvals.decline_approval(approval=first, reason="not today", by=factories.actor(ana), at=NOON)

    assert made.requested(box.device, ana, subject_id=first.subject_id).state == "requested"


def test_a_request_that_ran_out_is_in_nobody_s_way(box: Box, ana: User) -> None:
    first = made.requested(box.device, ana, at=NOON - timedelta(days=7))

    made.requested(box.device, ana, subject_id=first.subject_id)

    assert Approval.objects.get(pk=first.pk).state == "expired"


def test_a_device_that_is_not_active_is_asked_for_nothing(box: Box, lab: Account, ana: User) -> None:
    pending = made.new_device(lab, ana, name="second").device
    checkpoint = made.checkpoint_for(pending)
    devices.revoke_device(device=box.device, reason="", by=factories.actor(ana), at=NOON)

    for device in (pending, box.device):
        with pytest.raises(DeviceNotActive):
            made.requested(device, ana, checkpoint=checkpoint)
    assert not Approval.objects.exists()


def test_a_contract_that_the_device_does_not_accept_is_not_asked_for(lab: Account, ana: User) -> None:
    box = made.box(lab, ana, accepts=[])

    with pytest.raises(ContractNotAccepted) as refused:
        made.requested(box.device, ana)

    assert refused.value.members["contract"] == made.contract_of(box.device).name
    assert not Approval.objects.exists()


def test_a_device_may_accept_every_contract_of_a_robot_and_rate(lab: Account, ana: User) -> None:
    box = made.box(lab, ana, accepts=["stilt@50"])

    assert made.requested(box.device, ana).state == "requested"


def test_a_contract_of_another_robot_is_never_accepted(box: Box, eve: User) -> None:
    """Another account's robot of the same slug, joints and rate has a contract of the same name."""
    theirs = campaigns.contract(campaigns.robot(eve.account))

    assert theirs.name in box.device.accepted_contracts
    assert not box.device.accepts(theirs)


# Giving


def test_consent_freezes_the_sheet_and_signs_a_token(box: Box, ana: User) -> None:
    approval = issue(made.requested(box.device, ana), ana)

    assert bytes(approval.document) == ERRANDS.bytes_of(approval.subject_id)
    token = canonical.object_of(approval.token.encode())
    assert approval.token.encode() == canonical.dumps(token)
    payload = token["payload"]
    assert payload == {
        "kind": "approval_token",
        "version": 1,
        "approval_id": approval.pk,
        "session_id": "ses_1",
        "trial_id": approval.subject_id,
        "position": 1,
        "device_id": box.device.pk,
        "robot": "stilt",
        "contract": made.contract_of(box.device).name,
        "checkpoint": {
            "id": approval.checkpoint_id,
            "onnx_sha256": approval.checkpoint.onnx_sha256,
            "bytes": approval.checkpoint.bytes,
        },
        "run_sheet_sha256": canonical.sha256_hex(bytes(approval.document)),
        "issued_at": "2026-01-05T12:00:00.000Z",
        "expires_at": "2026-01-06T00:00:00.000Z",
        "approver": "ana@lab.test",
    }


def verified(approval: Approval, token: str):
    return verify_token(
        canonical.object_of(token.encode()),
        hub_keys={key.kid: key.public_key for key in keys.all_keys(at=NOON)},
        device_id=approval.device_id,
        trial_id=approval.subject_id,
        sheet_sha256=approval.document_sha256,
        onnx_sha256=approval.onnx_sha256,
        onnx_bytes=approval.checkpoint.bytes,
        accepted=approval.device.accepted_contracts,
        now=NOON,
    )


def test_the_driver_takes_the_hub_s_token(box: Box, ana: User) -> None:
    approval = issue(made.requested(box.device, ana), ana)

    assert verified(approval, approval.token)["approval_id"] == approval.pk


def test_the_driver_refuses_a_token_with_one_character_changed(box: Box, ana: User) -> None:
    approval = issue(made.requested(box.device, ana), ana)
    payload = canonical.object_of(approval.token.encode())["payload"]

    for key, value in payload.items():
        other = value + 1 if isinstance(value, int) else f"{value}x"
        token = json.loads(approval.token)
        token["payload"][key] = other
        with pytest.raises(TokenRefused):
            verified(approval, json.dumps(token))


def test_the_driver_refuses_a_token_that_another_key_signed(box: Box, ana: User) -> None:
    approval = issue(made.requested(box.device, ana), ana)
    payload = canonical.object_of(approval.token.encode())["payload"]
    forged = signatures.sign(payload, SigningKey.generate())  # type: ignore[arg-type]

    for kid in (forged["kid"], json.loads(approval.token)["kid"]):
        with pytest.raises(TokenRefused):
            verified(approval, json.dumps({**forged, "kid": kid}))


def test_consent_says_which_sheet_it_is_to(box: Box, ana: User) -> None:
    approval = made.requested(box.device, ana)

    with pytest.raises(DigestMissing) as refused:
        consent.issue_approval(approval=approval, run_sheet_sha256=None, by=factories.actor(ana), at=NOON)

    assert refused.value.status == 428


def test_a_sheet_that_changed_since_it_was_read_is_not_consented_to(box: Box, ana: User) -> None:
    approval = made.requested(box.device, ana)
    seen = made.digest_of(approval)
    ERRANDS.documents[approval.subject_id]["kd_scale"] = 9.0

    with pytest.raises(SheetChanged) as refused:
        issue(approval, ana, digest=seen)

    assert refused.value.members["run_sheet_sha256"] == made.digest_of(approval)
    assert Approval.objects.get().state == "requested"


def test_a_subject_that_cannot_freeze_stops_the_act(box: Box, ana: User, monkeypatch) -> None:
    approval = made.requested(box.device, ana)
    monkeypatch.setattr(ERRANDS, "freeze", lambda *_, **__: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        issue(approval, ana)

    assert Approval.objects.get().state == "requested"


def test_what_has_changed_since_the_request_is_looked_at_again(box: Box, lab: Account, ana: User) -> None:
    second = made.box(lab, ana, name="second")
    of_second, ended, unaccepted = (
        made.requested(second.device, ana),
        made.requested(box.device, ana),
        made.requested(box.device, ana),
    )
    Device.objects.filter(pk=second.device.pk).update(state="revoked", revoked_at=NOON)
    end_lineage(checkpoint=ended.checkpoint, reason="it fell", by=factories.actor(ana), at=NOON)
    Device.objects.filter(pk=box.device.pk).update(accepted_contracts=[])

    with pytest.raises(DeviceNotActive):
        issue(of_second, ana)
    with pytest.raises(ContractNotAccepted):
        issue(unaccepted, ana)
    Device.objects.filter(pk=box.device.pk).update(accepted_contracts=["stilt@50"])
    with pytest.raises(LineageEnded):
        issue(ended, ana)
    assert issue(unaccepted, ana).state == "issued"


def test_an_operator_and_a_stranger_give_no_consent(box: Box, ana: User, oto: User, eve: User) -> None:
    approval = made.requested(box.device, ana)

    for user in (oto, eve):
        with pytest.raises(RoleForbidden):
            issue(approval, user)


def test_a_program_gives_no_consent(box: Box, lab: Account, ana: User) -> None:
    approval = made.requested(box.device, ana)
    key = factories.key_actor(factories.api_key(ana, account=lab).key)

    with pytest.raises(PersonsOnly):
        consent.issue_approval(approval=approval, run_sheet_sha256=made.digest_of(approval), by=key, at=NOON)


@pytest.mark.parametrize("act", [approvals.decline_approval, approvals.revoke_approval])
def test_an_operator_and_a_program_take_no_decision(
    box: Box, lab: Account, ana: User, oto: User, act
) -> None:
    approval = made.requested(box.device, ana)
    key = factories.key_actor(factories.api_key(ana, account=lab).key)

    with pytest.raises(RoleForbidden):
        act(approval=approval, reason="", by=factories.actor(oto), at=NOON)
    with pytest.raises(PersonsOnly):
        act(approval=approval, reason="", by=key, at=NOON)


def test_an_operator_and_another_account_s_key_withdraw_nothing(
    box: Box, ana: User, oto: User, eve: User
) -> None:
    approval = made.requested(box.device, ana)
    theirs = factories.key_actor(factories.api_key(eve).key)

    for by in (factories.actor(oto), theirs):
        with pytest.raises(RoleForbidden):
            approvals.withdraw_approval(approval=approval, reason="", by=by, at=NOON)


def test_a_decision_is_on_what_is_true_now_not_on_what_was_read(box: Box, ana: User, mo: User) -> None:
    read_before = made.requested(box.device, ana)
    approvals.decline_approval(approval=read_before, reason="", by=factories.actor(mo), at=NOON)
    stale = Approval.objects.get()
    stale.state = "requested"

    for act in (approvals.decline_approval, approvals.withdraw_approval):
        with pytest.raises(WrongState):
            act(approval=stale, reason="", by=factories.actor(ana), at=NOON)
    with pytest.raises(WrongState):
        issue(stale, ana)


@pytest.mark.parametrize(("hours", "is_recent"), [(11.9, True), (12, False)])
def test_consent_needs_a_recent_sign_in(box: Box, ana: User, hours: float, is_recent: bool) -> None:
    approval = made.requested(box.device, ana)
    signed_in_at = NOON - timedelta(hours=hours)

    if is_recent:
        assert issue(approval, ana, signed_in_at=signed_in_at).state == "issued"
    else:
        with pytest.raises(RecentSignInNeeded):
            issue(approval, ana, signed_in_at=signed_in_at)


def test_consent_to_one_s_own_request_is_said_in_the_record(box: Box, ana: User, mo: User) -> None:
    own, another_s = issue(made.requested(box.device, ana), ana), issue(made.requested(box.device, mo), ana)

    assert (own.is_self_approved, another_s.is_self_approved) == (True, False)
    said = [event.sentence for event in Event.objects.filter(action="approval.issued").order_by("pk")]
    assert said[0].endswith("on box, which they asked for themselves.")
    assert said[1].endswith("on box.")


def test_what_a_person_s_key_asked_for_counts_as_theirs(box: Box, lab: Account, ana: User) -> None:
    key = factories.api_key(ana, account=lab).key
    approval = made.requested(box.device, ana, asked_by=factories.key_actor(key))

    assert issue(approval, ana).is_self_approved
    sentence = Event.objects.get(action="approval.issued").sentence
    assert sentence.endswith(f"which their key {key.prefix}… asked for.")


def test_an_account_may_forbid_consent_to_one_s_own_request(box: Box, ana: User, mo: User) -> None:
    Account.objects.update(self_approval_allowed=False)
    approval = made.requested(box.device, ana)

    with pytest.raises(SelfApprovalForbidden):
        issue(approval, ana)

    assert issue(approval, mo).state == "issued"


def test_a_member_gives_consent(box: Box, ana: User, mo: User) -> None:
    assert issue(made.requested(box.device, ana), mo).issued_by == mo


# Many at once


@pytest.fixture
def racing(transactional_db: None) -> tuple[Box, User, User]:
    ana = factories.person()
    lab = factories.org(owner=ana)
    return made.box(lab, ana), ana, factories.member("mo", org=lab)


def test_of_two_consents_at_once_one_is_given(racing) -> None:
    box, ana, mo = racing
    approval = made.requested(box.device, ana)

    answers = at_once(lambda: issue(approval, ana), lambda: issue(approval, mo))

    assert sorted(type(answer).__name__ for answer in answers) == ["Approval", "WrongState"]
    assert Event.objects.filter(action="approval.issued").count() == 1


def test_of_consent_and_refusal_at_once_one_counts(racing) -> None:
    box, ana, mo = racing
    approval = made.requested(box.device, ana)
    no = factories.actor(mo)

    at_once(
        lambda: issue(approval, ana),
        lambda: approvals.decline_approval(approval=approval, reason="", by=no, at=NOON),
    )

    assert Approval.objects.get().state in ("issued", "declined")
    assert Event.objects.filter(action__in=["approval.issued", "approval.declined"]).count() == 1


def test_of_ten_requests_for_one_thing_at_once_one_is_filed(racing) -> None:
    box, ana, _ = racing
    subject_id, checkpoint = ERRANDS.new(), made.checkpoint_for(box.device)

    answers = at_once(
        *[lambda: made.requested(box.device, ana, subject_id=subject_id, checkpoint=checkpoint)] * 10
    )

    assert sorted(type(answer).__name__ for answer in answers) == ["Approval"] + ["AskedAlready"] * 9


def test_a_request_that_meets_the_device_s_end_is_refused_or_ended(racing) -> None:
    box, ana, _ = racing
    checkpoint = made.checkpoint_for(box.device)
    who = factories.actor(ana)

    at_once(
        lambda: devices.revoke_device(device=box.device, reason="", by=who, at=NOON),
        *[lambda: made.requested(box.device, ana, checkpoint=checkpoint)] * 5,
    )

    assert Device.objects.get().state == "revoked"
    assert not Approval.objects.filter(state__in=Approval.OPEN).exists()


def test_a_request_filed_while_the_device_is_being_revoked_waits_and_is_refused(racing) -> None:
    box, ana, _ = racing
    checkpoint = made.checkpoint_for(box.device)

    with transaction.atomic():
        devices.revoke_device(device=box.device, reason="", by=factories.actor(ana), at=NOON)
        (waits,) = at_once(lambda: _filed_within(0.5, box, ana, checkpoint))
    assert waits == "waits"

    with pytest.raises(DeviceNotActive):
        made.requested(box.device, ana, checkpoint=checkpoint)


def _filed_within(seconds: float, box: Box, by: User, checkpoint) -> str:
    from django.db import OperationalError, connection

    try:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute(f"SET LOCAL lock_timeout = {int(seconds * 1000)}")
            made.requested(box.device, by, checkpoint=checkpoint)
    except OperationalError:
        return "waits"
    return "filed"


# Over HTTP


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
