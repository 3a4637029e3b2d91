"""Keys that follow one another: a new one takes over, and what an old one signed stays good."""

from datetime import timedelta

import pytest
from nacl.signing import SigningKey

from devices.services import enrolment
from devices.statements import NotBound, WrongSignature, key_at
from driver.wire import base64url, rotation, signatures
from hub.accounts.models import Account, User
from tests.devices import factories as made
from tests.devices.factories import Box
from tests.factories import NOON


def rotate(box: Box, *, at=NOON, new: SigningKey | None = None) -> SigningKey:
    new = new or SigningKey.generate()
    payload = rotation.rotation_payload(device_id=box.device.pk, new_key=new, at=at)
    enrolment.rotate_device_key(device=box.device, envelope=signatures.sign(payload, box.key), at=at)
    return new


def test_a_new_key_takes_over_and_the_old_one_counts_no_more(box: Box) -> None:
    old, box.key = box.key, rotate(box)

    assert box.get(f"{box.path}/approvals").status_code == 200
    assert box.get(f"{box.path}/approvals", key=old).status_code == 401
    with pytest.raises(WrongSignature):
        box.tell(signatures.sign(box.heartbeat()["payload"], old))


def test_what_the_key_of_a_run_signed_offline_counts_after_the_change(box: Box, ana: User) -> None:
    approval = made.running(box, ana)
    stopped = box.stopped(approval)
    box.key = rotate(box)

    box.tell(stopped)

    approval.refresh_from_db()
    assert approval.state == "stopped"


def test_the_key_of_a_run_is_the_one_that_was_active_when_it_started(box: Box, ana: User) -> None:
    first = box.device.keys.get()
    approval = made.running(box, ana)
    box.key = rotate(box, at=NOON + timedelta(hours=1))
    second = made.running_after(box, ana, approval, at=NOON + timedelta(hours=2))

    assert (approval.started_with, second.started_with) == (first, box.device.keys.get(active_until=None))
    assert key_at(box.device, NOON + timedelta(minutes=59)) == first
    assert key_at(box.device, NOON + timedelta(hours=1)) == second.started_with
    assert key_at(box.device, NOON - timedelta(days=1)) is None


def rotation_of(box: Box, new: SigningKey, *, by: SigningKey | None = None, **changes) -> dict:
    payload = {**rotation.rotation_payload(device_id=box.device.pk, new_key=new, at=NOON), **changes}
    return signatures.sign(payload, by or box.key)


def test_a_rotation_without_proof_of_the_new_key_is_403(box: Box) -> None:
    new, thief = SigningKey.generate(), SigningKey.generate()
    proof = rotation.rotation_payload(device_id=box.device.pk, new_key=new, at=NOON)["proof"]
    forged = signatures.sign(proof["payload"], thief)

    for said in (forged, {**forged, "kid": proof["kid"]}):
        with pytest.raises(WrongSignature):
            enrolment.rotate_device_key(
                device=box.device, envelope=rotation_of(box, new, proof=said), at=NOON
            )


def test_a_rotation_that_the_old_key_did_not_sign_is_403(box: Box) -> None:
    new = SigningKey.generate()

    with pytest.raises(WrongSignature):
        enrolment.rotate_device_key(device=box.device, envelope=rotation_of(box, new, by=new), at=NOON)


def test_a_proof_made_for_another_device_is_422(box: Box, lab: Account, ana: User) -> None:
    second, new = made.box(lab, ana, name="second"), SigningKey.generate()
    theirs = rotation.rotation_payload(device_id=second.device.pk, new_key=new, at=NOON)["proof"]

    with pytest.raises(NotBound):
        enrolment.rotate_device_key(device=box.device, envelope=rotation_of(box, new, proof=theirs), at=NOON)
    with pytest.raises(NotBound):
        enrolment.rotate_device_key(
            device=box.device,
            envelope=rotation_of(box, new, device_id=second.device.pk, proof=theirs),
            at=NOON,
        )


@pytest.mark.parametrize(
    "changes",
    [
        {"public_key": "AAAA"},
        {"public_key": "A" * 42 + "B"},
        {"public_key": None},
        {"proof": {}},
        {"proof": None},
        {"kind": "enrol"},
        {"more": 1},
    ],
)
def test_a_rotation_of_another_shape_is_422(box: Box, changes: dict) -> None:
    envelope = rotation_of(box, SigningKey.generate(), **changes)

    assert box.post(f"{box.path}/keys", envelope).status_code == 422


def test_a_key_that_was_in_use_does_not_come_back(box: Box) -> None:
    old, box.key = box.key, rotate(box)

    with pytest.raises(enrolment.KeyTaken):
        rotate(box, new=old)
    with pytest.raises(enrolment.KeyTaken):
        rotate(box, new=box.key)
    assert box.device.keys.filter(active_until=None).count() == 1


def test_a_key_of_small_order_takes_nothing_over(box: Box) -> None:
    small = base64url.encode(bytes([1]) + bytes(31))

    with pytest.raises(enrolment.KeyRefused):
        enrolment.rotate_device_key(
            device=box.device, envelope=rotation_of(box, SigningKey.generate(), public_key=small), at=NOON
        )


def test_a_rotation_over_http_shows_the_history(box: Box) -> None:
    response = box.post(f"{box.path}/keys", rotation_of(box, SigningKey.generate()))

    assert response.status_code == 200
    assert sorted(key["active_until"] is None for key in response.json()["keys"]) == [False, True]
