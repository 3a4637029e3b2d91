"""Giving consent: one person, one run, the sheet they saw."""

import json
from datetime import timedelta

import pytest
from nacl.signing import SigningKey

from devices import keys
from devices.models import Approval, Device
from devices.services import approvals, consent
from devices.services.consent import (
    ContractNotAccepted,
    DeviceNotActive,
    DigestMissing,
    SelfApprovalForbidden,
    SheetChanged,
)
from driver.wire import canonical, signatures
from driver.wire.token import TokenRefused, verify_token
from hub.accounts.models import Account, User
from hub.accounts.permissions import PersonsOnly, RecentSignInNeeded, RoleForbidden
from hub.audit.models import Event
from hub.campaigns.services.lineage import LineageEnded, end_lineage
from hub.core.lifecycle import WrongState
from tests import factories
from tests.devices import factories as made
from tests.devices.factories import ERRANDS, Box
from tests.factories import NOON


def test_consent_freezes_the_sheet_and_signs_a_token(box: Box, ana: User) -> None:
    approval = made.consent_to(made.requested(box.device, ana), ana)

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
    approval = made.consent_to(made.requested(box.device, ana), ana)

    assert verified(approval, approval.token)["approval_id"] == approval.pk


def test_the_driver_refuses_a_token_with_one_character_changed(box: Box, ana: User) -> None:
    approval = made.consent_to(made.requested(box.device, ana), ana)
    payload = canonical.object_of(approval.token.encode())["payload"]

    for key, value in payload.items():
        other = value + 1 if isinstance(value, int) else f"{value}x"
        token = json.loads(approval.token)
        token["payload"][key] = other
        with pytest.raises(TokenRefused):
            verified(approval, json.dumps(token))


def test_the_driver_refuses_a_token_that_another_key_signed(box: Box, ana: User) -> None:
    approval = made.consent_to(made.requested(box.device, ana), ana)
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
        made.consent_to(approval, ana, digest=seen)

    assert refused.value.members["run_sheet_sha256"] == made.digest_of(approval)
    assert Approval.objects.get().state == "requested"


def test_a_subject_that_cannot_freeze_stops_the_act(box: Box, ana: User, monkeypatch) -> None:
    approval = made.requested(box.device, ana)
    monkeypatch.setattr(ERRANDS, "freeze", lambda *_, **__: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        made.consent_to(approval, ana)

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
        made.consent_to(of_second, ana)
    with pytest.raises(ContractNotAccepted):
        made.consent_to(unaccepted, ana)
    Device.objects.filter(pk=box.device.pk).update(accepted_contracts=["stilt@50"])
    with pytest.raises(LineageEnded):
        made.consent_to(ended, ana)
    assert made.consent_to(unaccepted, ana).state == "issued"


def test_an_operator_and_a_stranger_give_no_consent(box: Box, ana: User, oto: User, eve: User) -> None:
    approval = made.requested(box.device, ana)

    for user in (oto, eve):
        with pytest.raises(RoleForbidden):
            made.consent_to(approval, user)


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
        made.consent_to(stale, ana)


@pytest.mark.parametrize(("hours", "is_recent"), [(11.9, True), (12, False)])
def test_consent_needs_a_recent_sign_in(box: Box, ana: User, hours: float, is_recent: bool) -> None:
    approval = made.requested(box.device, ana)
    signed_in_at = NOON - timedelta(hours=hours)

    if is_recent:
        assert made.consent_to(approval, ana, signed_in_at=signed_in_at).state == "issued"
    else:
        with pytest.raises(RecentSignInNeeded):
            made.consent_to(approval, ana, signed_in_at=signed_in_at)


def test_consent_to_one_s_own_request_is_said_in_the_record(box: Box, ana: User, mo: User) -> None:
    own, another_s = (
        made.consent_to(made.requested(box.device, ana), ana),
        made.consent_to(made.requested(box.device, mo), ana),
    )

    assert (own.is_self_approved, another_s.is_self_approved) == (True, False)
    said = [event.sentence for event in Event.objects.filter(action="approval.issued").order_by("pk")]
    assert said[0].endswith("on box, which they asked for themselves.")
    assert said[1].endswith("on box.")


def test_what_a_person_s_key_asked_for_counts_as_theirs(box: Box, lab: Account, ana: User) -> None:
    key = factories.api_key(ana, account=lab).key
    approval = made.requested(box.device, ana, asked_by=factories.key_actor(key))

    assert made.consent_to(approval, ana).is_self_approved
    sentence = Event.objects.get(action="approval.issued").sentence
    assert sentence.endswith(f"which their key {key.prefix}… asked for.")


def test_an_account_may_forbid_consent_to_one_s_own_request(box: Box, ana: User, mo: User) -> None:
    Account.objects.update(self_approval_allowed=False)
    approval = made.requested(box.device, ana)

    with pytest.raises(SelfApprovalForbidden):
        made.consent_to(approval, ana)

    assert made.consent_to(approval, mo).state == "issued"


def test_a_member_gives_consent(box: Box, ana: User, mo: User) -> None:
    assert made.consent_to(made.requested(box.device, ana), mo).issued_by == mo
