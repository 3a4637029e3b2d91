from datetime import timedelta

import pytest
from django.conf import settings
from nacl.signing import SigningKey

from devices import keys
from devices.models import Device
from devices.services import devices, enrolment
from devices.services.enrolment import EnrolmentRefused, KeyRefused, KeyTaken
from devices.statements import StatementInvalid, WrongSignature
from driver.wire import base64url, signatures
from hub.accounts.models import Account, User
from hub.accounts.permissions import RoleForbidden
from hub.audit.models import Event
from hub.core.problems import Unprocessable
from tests import factories
from tests.devices import factories as made
from tests.devices.factories import Box
from tests.factories import NOON
from tests.hub.campaigns import factories as campaigns
from tests.races import at_once

ENROL = "/api/v1/devices/enrol"


@pytest.fixture
def new(lab: Account, ana: User) -> enrolment.NewDevice:
    return made.new_device(lab, ana)


@pytest.fixture
def key() -> SigningKey:
    return SigningKey.generate()


def enrol(code: str, key: SigningKey, *, minutes: float = 1) -> Device:
    envelope = made.enrol_envelope(code, key)
    return enrolment.enrol_device(envelope=envelope, at=NOON + timedelta(minutes=minutes))


def wrong(code: str) -> str:
    """A code that begins like this one, with another secret part."""
    return f"{code[:8]}{'0' * 12}{code[20:]}"


def test_a_code_is_twenty_random_letters_and_the_hub_s_fingerprint(new: enrolment.NewDevice) -> None:
    random, _, fingerprint = new.code.partition(".")

    assert len(random) == 20
    assert fingerprint == signatures.kid(keys.signing_key(at=NOON).public_key)
    assert new.code not in str(Device.objects.values().get())


def test_a_box_that_enrols_is_active_with_its_key(new: enrolment.NewDevice, key: SigningKey) -> None:
    device = enrol(new.code, key)

    assert device.state == "active"
    active = device.keys.get()
    assert active.public_key == base64url.encode(key.verify_key.encode())
    assert active.active_until is None


def test_a_box_learns_what_to_pin(new: enrolment.NewDevice, key: SigningKey) -> None:
    Device.objects.update(enrol_until=NOON + timedelta(days=365 * 100))

    response = factories.client().post(ENROL, made.enrol_envelope(new.code, key))

    assert response.status_code == 200
    said = response.json()
    assert said["device_id"] == new.device.pk
    assert said["hub"]["storage_hosts"] == ["127.0.0.1:9"]
    assert [each["kid"] for each in said["hub"]["keys"]] == [new.code[21:]]
    assert set(said["hub"]["keys"][0]) == {"kid", "public_key", "valid_from", "valid_until"}


def test_a_code_counts_once(new: enrolment.NewDevice, key: SigningKey) -> None:
    enrol(new.code, key)

    with pytest.raises(EnrolmentRefused):
        enrol(new.code, SigningKey.generate())


def test_a_box_whose_answer_was_lost_may_ask_again(new: enrolment.NewDevice, key: SigningKey) -> None:
    first = enrol(new.code, key)

    again = enrol(new.code, key, minutes=2)

    assert again == first
    assert Event.objects.filter(action="device.enrolled").count() == 1


@pytest.mark.parametrize(("minutes", "is_enrolled"), [(14.9, True), (15, False)])
def test_a_code_lasts_fifteen_minutes(
    new: enrolment.NewDevice, key: SigningKey, minutes: float, is_enrolled: bool
) -> None:
    if is_enrolled:
        assert enrol(new.code, key, minutes=minutes).state == "active"
    else:
        with pytest.raises(EnrolmentRefused):
            enrol(new.code, key, minutes=minutes)


@pytest.mark.parametrize(("tries", "is_enrolled"), [(4, True), (5, False)])
def test_five_wrong_tries_end_a_code(
    new: enrolment.NewDevice, key: SigningKey, tries: int, is_enrolled: bool
) -> None:
    for _ in range(tries):
        with pytest.raises(EnrolmentRefused):
            enrol(wrong(new.code), key)

    if is_enrolled:
        assert enrol(new.code, key).state == "active"
    else:
        with pytest.raises(EnrolmentRefused):
            enrol(new.code, key)
        assert (
            "5 wrong tries ended the enrolment code" in Event.objects.get(action="device.code-ended").sentence
        )


@pytest.mark.django_db(transaction=True)
def test_wrong_tries_at_once_are_all_counted() -> None:
    ana = factories.person()
    new = made.new_device(ana.account, ana)

    answers = at_once(*[lambda: enrol(wrong(new.code), SigningKey.generate())] * 8)

    assert {type(answer) for answer in answers} == {EnrolmentRefused}
    assert Device.objects.get().enrol_wrong_tries == settings.ENROLMENT_TRIES
    with pytest.raises(EnrolmentRefused):
        enrol(new.code, SigningKey.generate())


@pytest.mark.django_db(transaction=True)
def test_of_two_boxes_with_one_code_one_enrols() -> None:
    ana = factories.person()
    new = made.new_device(ana.account, ana)

    answers = at_once(*[lambda: enrol(new.code, SigningKey.generate())] * 2)

    assert sorted(type(answer).__name__ for answer in answers) == ["Device", "EnrolmentRefused"]
    assert Device.objects.get().keys.count() == 1


def test_a_wrong_an_unknown_and_a_spent_code_are_answered_alike(
    new: enrolment.NewDevice, key: SigningKey
) -> None:
    enrol(new.code, key)
    codes = [wrong(new.code), f"{'z' * 20}{new.code[20:]}", new.code, f"{new.code[:21]}{'0' * 16}"]

    answers = [
        factories.client().post(ENROL, made.enrol_envelope(code, SigningKey.generate())) for code in codes
    ]

    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.content for answer in answers}) == 1


@pytest.mark.parametrize("was", ["pending", "active"])
def test_a_revoked_device_does_not_enrol_not_even_again(
    new: enrolment.NewDevice, key: SigningKey, ana: User, was: str
) -> None:
    if was == "active":
        enrol(new.code, key)
    devices.revoke_device(device=new.device, reason="", by=factories.actor(ana), at=NOON)

    with pytest.raises(EnrolmentRefused):
        enrol(new.code, key)


def test_without_the_private_half_nobody_enrols(new: enrolment.NewDevice, key: SigningKey) -> None:
    another = SigningKey.generate().verify_key.encode()
    envelope = made.enrol_envelope(new.code, key, public_key=another)

    with pytest.raises(WrongSignature):
        enrolment.enrol_device(envelope=envelope, at=NOON)

    assert Device.objects.get().enrol_wrong_tries == 0


def test_a_key_of_small_order_is_refused(new: enrolment.NewDevice, key: SigningKey) -> None:
    envelope = made.enrol_envelope(new.code, key, public_key=bytes([1]) + bytes(31))

    with pytest.raises(KeyRefused) as refused:
        enrolment.enrol_device(envelope=envelope, at=NOON)

    assert refused.value.status == 422


def test_the_key_of_another_device_is_refused(box: Box, lab: Account, ana: User) -> None:
    new = made.new_device(lab, ana, name="second")

    with pytest.raises(KeyTaken):
        enrol(new.code, box.key)

    assert Device.objects.get(name="second").state == "pending"


@pytest.mark.parametrize(
    "change",
    [
        lambda envelope: {**envelope, "extra": 1},
        lambda envelope: {**envelope, "payload": {**envelope["payload"], "extra": 1}},
        lambda envelope: {**envelope, "payload": {**envelope["payload"], "public_key": "AAAA"}},
        lambda envelope: {**envelope, "payload": {**envelope["payload"], "code": "short"}},
        lambda envelope: {**envelope, "signature": envelope["signature"][:-1] + "!"},
        lambda envelope: [envelope],
        lambda envelope: None,
    ],
)
def test_another_shape_is_refused_before_anything_is_looked_up(new, key, change) -> None:
    with pytest.raises(StatementInvalid):
        enrolment.enrol_device(envelope=change(made.enrol_envelope(new.code, key)), at=NOON)


def test_only_an_owner_adds_a_device(lab: Account, mo: User, oto: User, eve: User) -> None:
    robot = campaigns.robot(lab)
    wanted = {"account": lab.pk, "robot": robot.pk, "name": "box"}

    answers = [factories.client(user).post("/api/v1/devices", wanted) for user in (mo, oto, eve)]

    assert [answer.status_code for answer in answers] == [403, 403, 404]
    with pytest.raises(RoleForbidden):
        made.new_device(lab, mo)
    assert not Device.objects.exists()


def test_a_program_adds_no_device(lab: Account, ana: User) -> None:
    program = factories.key_client(factories.api_key(ana, account=lab))

    answer = program.post("/api/v1/devices", {"robot": campaigns.robot(lab).pk, "name": "box"})

    assert answer.status_code == 403


def test_a_device_of_a_robot_that_one_does_not_see_is_not_made(ana: User, eve: User) -> None:
    robot = campaigns.robot(eve.account)

    answer = factories.client(ana).post("/api/v1/devices", {"robot": robot.pk, "name": "box"})

    assert answer.status_code == 404


@pytest.mark.parametrize(
    "name", ["stilt", "other/0123456789ab", "stilt/0123456789AB", "stilt@0", "stilt@50 ", "Stilt@50", "@50"]
)
def test_a_contract_that_no_checkpoint_can_have_is_refused(lab: Account, ana: User, name: str) -> None:
    with pytest.raises(Unprocessable) as refused:
        made.new_device(lab, ana, accepts=[name])

    assert "accepted_contracts" in refused.value.members["errors"]  # type: ignore[operator]


@pytest.mark.parametrize(("count", "status"), [(100, 201), (101, 422)])
def test_a_device_accepts_a_hundred_contracts(lab: Account, ana: User, count: int, status: int) -> None:
    names = [f"stilt/{number:012x}" for number in range(count)]
    wanted = {"account": lab.pk, "robot": campaigns.robot(lab).pk, "name": "box", "accepted_contracts": names}

    assert factories.client(ana).post("/api/v1/devices", wanted).status_code == status


@pytest.mark.parametrize("act", ["create", "enrol", "end the code"])
def test_without_its_event_nothing_of_an_enrolment_lands(lab, ana, new, key, monkeypatch, act) -> None:
    acts = {
        "create": lambda: made.new_device(lab, ana, name="second"),
        "enrol": lambda: enrol(new.code, key),
        "end the code": lambda: enrol(wrong(new.code), key),
    }
    Device.objects.update(enrol_wrong_tries=settings.ENROLMENT_TRIES - 1)
    before = list(Device.objects.values())
    monkeypatch.setattr(enrolment.audit, "record", lambda *_, **__: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        acts[act]()

    assert list(Device.objects.values()) == before
    assert not new.device.keys.exists()


def test_a_device_belongs_to_the_account_of_its_robot(lab: Account, ana: User) -> None:
    elsewhere = factories.org("elsewhere", owner=ana)
    robot = campaigns.robot(lab)

    with pytest.raises(Unprocessable) as refused:
        enrolment.create_device(
            owner=elsewhere,
            robot=robot,
            name="bench",
            accepted_contracts=[],
            by=factories.actor(ana),
            at=NOON,
        )

    assert list(refused.value.members["errors"]) == ["robot"]
    assert not Device.objects.exists()
