"""What a device says of itself: shape, signature, binding, number, state, in this order."""

import json
from datetime import timedelta

import pytest
from nacl.signing import SigningKey

from devices.models import Device, DeviceEvent
from devices.services import approvals
from devices.services.events import SeqUsed
from devices.services.runs import NotStarted
from devices.statements import NotBound, StatementInvalid, WrongSignature
from driver.wire import base64url, canonical, signatures
from hub.accounts.models import Account, User
from hub.audit.models import Event
from hub.core.lifecycle import WrongState
from tests import factories
from tests.devices import factories as made
from tests.devices.factories import BEAT_DATA, RUN_DATA, Box
from tests.factories import NOON
from tests.races import at_once

STAGE = {"stage": "floor", "at_s": 4.0}
DONE = {"stage": "floor", "at_s": 14.0, "status": "done", "reason": None}


def altered(envelope: dict, key: SigningKey, **changes) -> dict:
    """The same statement with something else in it, signed anew."""
    return signatures.sign({**envelope["payload"], **changes}, key)


# Shape, signature, binding


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "run_paused"},
        {"seq": 0},
        {"seq": "1"},
        {"seq": True},
        {"approval_id": 7},
        {"data": {**RUN_DATA, "extra": 1}},
        {"data": []},
        {"ts": "yesterday"},
        {"more": 1},
    ],
)
def test_another_shape_is_422(box: Box, ana: User, changes: dict) -> None:
    envelope = altered(box.started(made.issued(box.device, ana)), box.key, **changes)

    with pytest.raises(StatementInvalid):
        box.tell(envelope)


def test_a_signature_of_another_key_is_403(box: Box) -> None:
    envelope = signatures.sign(box.heartbeat()["payload"], SigningKey.generate())

    for kid in (envelope["kid"], box.heartbeat()["kid"]):
        with pytest.raises(WrongSignature):
            box.tell({**envelope, "kid": kid})


def test_a_changed_payload_is_403(box: Box) -> None:
    envelope = box.heartbeat()
    envelope["payload"]["data"]["unsent"] = 7

    with pytest.raises(WrongSignature):
        box.tell(envelope)


def test_the_statement_of_another_device_is_422(box: Box, lab: Account, ana: User) -> None:
    second = made.box(lab, ana, name="second")
    envelope = signatures.sign(second.heartbeat()["payload"], box.key)

    with pytest.raises(NotBound) as refused:
        box.tell(envelope)

    assert "payload.device_id" in refused.value.members["errors"]  # type: ignore[operator]


def test_the_approval_of_another_device_is_422_as_one_that_is_not_there(
    box: Box, lab: Account, ana: User
) -> None:
    second = made.box(lab, ana, name="second")
    theirs = made.issued(second.device, ana)
    refusals = []
    for approval_id in (theirs.pk, "apr_nothing"):
        with pytest.raises(NotBound) as refused:
            box.tell(altered(box.started(theirs), box.key, approval_id=approval_id))
        refusals.append(refused.value.body())

    assert refusals[0] == refusals[1]


def test_another_trial_than_the_approval_s_is_422(box: Box, ana: User) -> None:
    first, second = made.issued(box.device, ana), made.issued(box.device, ana)
    envelope = altered(box.started(first), box.key, trial_id=second.subject_id)

    with pytest.raises(NotBound):
        box.tell(envelope)


def test_the_earlier_answer_wins(box: Box, lab: Account, ana: User, eve: User) -> None:
    """Shape before signature before binding before number before state."""
    second = made.box(lab, ana, name="second")
    requested = made.requested(box.device, ana)
    box.tell(box.heartbeat())
    payload = {**box.started(requested)["payload"], "seq": 1, "device_id": second.device.pk, "more": 1}
    unsigned = SigningKey.generate()

    with pytest.raises(StatementInvalid):
        box.tell(signatures.sign(payload, unsigned))
    payload.pop("more")
    with pytest.raises(WrongSignature):
        box.tell(signatures.sign(payload, unsigned))
    with pytest.raises(NotBound):
        box.tell(signatures.sign(payload, box.key))
    payload["device_id"] = box.device.pk
    with pytest.raises(SeqUsed):
        box.tell(signatures.sign(payload, box.key))
    payload["seq"] = 2
    with pytest.raises(WrongState):
        box.tell(signatures.sign(payload, box.key))


# Numbers


def test_the_same_bytes_get_the_same_answer(box: Box, ana: User) -> None:
    started = box.started(made.issued(box.device, ana))
    first = box.tell(started)

    assert box.tell(started, at=NOON + timedelta(hours=1)) == first
    assert DeviceEvent.objects.count() == 1
    assert Event.objects.filter(action="approval.started").count() == 1


def test_the_same_bytes_get_the_same_answer_also_after_the_run(box: Box, ana: User) -> None:
    approval = made.issued(box.device, ana)
    started = box.started(approval)
    first = box.tell(started)
    box.tell(box.stopped(approval))

    assert box.tell(started) == first


def test_a_repeat_in_another_spelling_is_the_same_statement(box: Box) -> None:
    envelope = box.event("journal_lost", {})
    first = box.tell(envelope)

    assert box.tell({**envelope, "signature": envelope["signature"] + "=="}) == first


def test_another_statement_with_a_used_or_lower_number_is_409(box: Box) -> None:
    box.tell(box.event("journal_lost", {}, seq=7))

    for seq in (7, 6, 1):
        with pytest.raises(SeqUsed) as refused:
            box.tell(box.event("journal_lost", {"reason": "another"}, seq=seq))
        assert refused.value.members["last_seq"] == 7


def test_a_box_that_lost_its_journal_goes_on_above_the_hub_s_number(box: Box) -> None:
    box.tell(box.event("journal_lost", {}, seq=500))
    with pytest.raises(SeqUsed) as refused:
        box.tell(box.event("heartbeat", BEAT_DATA, seq=1))

    last = refused.value.members["last_seq"]
    box.tell(box.event("journal_lost", {"reason": "new disk"}, seq=last + 1))  # type: ignore[operator]

    said = Event.objects.filter(action="device.journal-lost").latest("pk")
    assert said.sentence == "The device box lost its journal after event 500 and goes on."


def test_a_gap_is_allowed_and_kept(box: Box) -> None:
    box.tell(box.event("journal_lost", {}, seq=3))
    box.tell(box.event("journal_lost", {}, seq=9))

    assert list(DeviceEvent.objects.order_by("seq").values_list("after_seq", "seq")) == [(0, 3), (3, 9)]


def test_a_refused_event_uses_no_number(box: Box, ana: User) -> None:
    approval = made.requested(box.device, ana)

    with pytest.raises(WrongState):
        box.tell(box.started(approval))

    assert Device.objects.get().last_seq == 0
    assert not DeviceEvent.objects.exists()


def test_the_signed_bytes_are_kept_as_they_were_signed(box: Box, ana: User) -> None:
    envelope = box.started(made.issued(box.device, ana))
    box.tell(envelope)

    kept = DeviceEvent.objects.get()
    assert bytes(kept.statement) == canonical.dumps(envelope["payload"])
    public_key = base64url.decode(box.device.keys.get().public_key)
    signature = base64url.decode(kept.signature)
    assert signatures.is_signed(bytes(kept.statement), signature=signature, public_key=public_key)


# Kinds


def test_a_heartbeat_updates_one_row_and_is_not_kept(box: Box) -> None:
    box.tell(box.heartbeat(unsent=3), at=NOON)
    box.tell(box.heartbeat(unsent=0, state="running", stage="floor"), at=NOON + timedelta(seconds=5))

    device = Device.objects.get()
    assert (device.heartbeat["unsent"], device.heartbeat["stage"]) == (0, "floor")
    assert device.heartbeat_at == NOON + timedelta(seconds=5)
    assert not DeviceEvent.objects.exists()


def test_a_heartbeat_counts_among_the_numbers(box: Box) -> None:
    beat = box.heartbeat()
    first = box.tell(beat)

    assert box.tell(beat) == first
    with pytest.raises(SeqUsed):
        box.tell(box.event("journal_lost", {}, seq=box.seq))


def test_a_heartbeat_learns_what_is_to_stop(box: Box, ana: User) -> None:
    approval = made.running(box, ana)
    assert box.tell(box.heartbeat())["stop_requested"] == []

    approvals.revoke_approval(approval=approval, reason="", by=factories.actor(ana), at=NOON)

    assert box.tell(box.heartbeat())["stop_requested"] == [approval.pk]


def test_stages_are_kept_while_a_run_goes_on_and_after_it(box: Box, ana: User) -> None:
    approval = made.running(box, ana)

    box.tell(box.event("stage_started", STAGE, approval=approval))
    box.tell(box.event("stage_finished", DONE, approval=approval))
    box.tell(box.stopped(approval))
    late = box.tell(box.event("stage_finished", DONE, approval=approval))

    assert set(late) == {"seq", "received_at"}
    assert DeviceEvent.objects.filter(approval=approval, kind="stage_finished").count() == 2


def test_stages_of_a_run_that_never_started_are_409(box: Box, ana: User) -> None:
    with pytest.raises(NotStarted):
        box.tell(box.event("stage_started", STAGE, approval=made.issued(box.device, ana)))


def test_a_refusal_is_kept_and_said_in_the_record(box: Box, ana: User) -> None:
    approval = made.issued(box.device, ana)

    box.tell(box.event("refused", {"reason": "kd_scale 9 is above the box's 1.5"}, approval=approval))

    said = Event.objects.get(action="approval.refused")
    assert said.sentence == (
        f"The device box refused to run {approval.about}: kd_scale 9 is above the box's 1.5"
    )
    assert (said.target, said.actor_kind, said.actor) == (approval.pk, "device", box.device.pk)
    approval.refresh_from_db()
    assert approval.state == "issued"


# Over HTTP


@pytest.mark.parametrize(
    "raw",
    [
        b'{"payload": {}, "payload": {}, "kid": "", "signature": ""}',
        b'{"payload": {"seq": NaN}, "kid": "", "signature": ""}',
        b'{"payload": {"seq": 9007199254740993}, "kid": "", "signature": ""}',
        b'{"payload": {"seq": 1e400}, "kid": "", "signature": ""}',
        b'{"payload": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
        b'{"payload": {"ts": "\\ud800"}, "kid": "", "signature": ""}',
        b"\xef\xbb\xbf{}",
        b"not json",
        b"",
    ],
)
def test_what_is_no_strict_json_is_400_and_never_500(box: Box, raw: bytes) -> None:
    assert box.request("POST", f"{box.path}/events", body=raw).status_code == 400


def test_a_body_in_other_types_than_signed_is_refused(box: Box, ana: User) -> None:
    envelope = box.started(made.issued(box.device, ana))
    envelope["payload"]["data"]["battery_v"] = "47.9"

    assert box.post(f"{box.path}/events", envelope).status_code == 422


def test_blanks_and_order_are_no_part_of_a_statement(box: Box) -> None:
    envelope = box.event("journal_lost", {})
    spaced = json.dumps(dict(reversed(envelope.items())), indent=4).encode()

    assert box.request("POST", f"{box.path}/events", body=spaced).status_code == 200


# Many at once


@pytest.mark.django_db(transaction=True)
def test_of_one_event_sent_ten_times_at_once_one_is_kept() -> None:
    ana = factories.person()
    box = made.box(ana.account, ana)
    started = box.started(made.issued(box.device, ana))

    answers = at_once(*[lambda: box.tell(started)] * 10)

    assert all(answer == answers[0] for answer in answers)
    assert DeviceEvent.objects.count() == 1
    assert Event.objects.filter(action="approval.started").count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_two_statements_with_one_number_at_once_one_is_taken() -> None:
    ana = factories.person()
    box = made.box(ana.account, ana)
    said = [box.event("journal_lost", {"reason": reason}, seq=1) for reason in ("a", "b")]

    answers = at_once(*[lambda envelope=envelope: box.tell(envelope) for envelope in said])

    assert sorted(type(answer).__name__ for answer in answers) == ["SeqUsed", "dict"]
