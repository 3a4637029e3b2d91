"""How a device says who it is, request by request."""

import re
from datetime import datetime, timedelta

import pytest
from django.conf import settings
from django.utils import timezone
from nacl.signing import SigningKey
from pytest_django import Settings

from devices import signatures
from devices.models import Device, Nonce
from devices.services import devices
from hub.accounts.models import Account, User
from tests import factories
from tests.devices import factories as made
from tests.devices.factories import Box
from tests.races import at_once

NONCE = "nonce-of-this-one-request"


def slug(response) -> str:
    return response.json()["type"].rpartition("/")[2]


def listed(box: Box, **how):
    return box.get(f"{box.path}/approvals", **how)


def beat(box: Box, **how):
    return box.post(f"{box.path}/events", box.heartbeat(), **how)


def test_a_signed_request_is_the_device_s(box: Box) -> None:
    assert listed(box).status_code == 200


def test_a_signed_body_is_the_device_s(box: Box) -> None:
    assert beat(box).status_code == 200


def test_the_query_is_signed_with_the_path(box: Box) -> None:
    assert box.get(f"{box.path}/approvals?state=issued%2Crunning&limit=100").status_code == 200


def test_another_key_is_refused_and_the_hub_says_which_address_it_checked(box: Box) -> None:
    response = listed(box, key=SigningKey.generate())

    assert response.status_code == 401
    assert slug(response) == "request-signature"
    assert f"{settings.PUBLIC_ORIGIN}{box.path}/approvals" in response.json()["detail"]


def test_a_body_that_was_changed_on_the_way_is_refused(box: Box) -> None:
    assert beat(box, sent=b'{"payload": {}, "kid": "", "signature": ""}').status_code == 401


def test_a_body_that_no_digest_covers_is_refused(box: Box) -> None:
    assert box.request("POST", f"{box.path}/events", body=b"", sent=b"{}").status_code == 401


@pytest.mark.parametrize("header", ["Signature", "Signature-Input"])
def test_a_changed_signature_header_is_refused(box: Box, header: str) -> None:
    changed = {"Signature": "hub=:AAAA:", "Signature-Input": 'hub=("@method");tag="trial-hub"'}

    assert listed(box, changed={header: changed[header]}).status_code == 401


def test_a_request_signed_for_another_method_is_refused(box: Box) -> None:
    assert box.request("POST", f"{box.path}/approvals", body=b"", sent_as="GET").status_code == 401


def test_a_request_signed_for_another_host_is_refused(box: Box) -> None:
    assert listed(box, origin="http://another.example").status_code == 401


def test_a_box_may_reach_the_hub_by_each_address_it_says_is_its_own(box: Box, settings: Settings) -> None:
    settings.DEVICE_ORIGINS = ["https://hub.example", "http://10.0.0.7:8000"]

    assert listed(box, origin="http://10.0.0.7:8000").status_code == 200
    assert listed(box, origin="https://hub.example").status_code == 200
    assert listed(box, origin="https://hub.example:443").status_code == 401


def test_what_host_says_counts_for_nothing(box: Box, settings: Settings) -> None:
    settings.ALLOWED_HOSTS = ["*"]

    assert listed(box, changed={"Host": "another.example"}).status_code == 200


@pytest.mark.parametrize(
    ("seconds", "is_taken"), [(-295, True), (295, True), (-306, False), (306, False), (-86400, False)]
)
def test_a_clock_may_be_five_minutes_off(box: Box, seconds: int, is_taken: bool) -> None:
    created = timezone.now() + timedelta(seconds=seconds)

    response = listed(box, created=created)

    if is_taken:
        assert response.status_code == 200
    else:
        assert (response.status_code, slug(response)) == (401, "clock-outside")


def test_a_clock_outside_is_told_the_hub_s_time(box: Box) -> None:
    response = listed(box, created=timezone.now() - timedelta(days=365 * 30))

    now = datetime.fromisoformat(response.json()["now"])
    assert abs(timezone.now() - now) < timedelta(seconds=10)
    assert re.fullmatch(r".*T\d\d:\d\d:\d\d\.\d{3}Z", response.json()["now"])


def test_a_clock_is_corrected_only_for_who_signs(box: Box) -> None:
    response = listed(box, created=timezone.now() - timedelta(days=1), key=SigningKey.generate())

    assert slug(response) == "request-signature"
    assert "now" not in response.json()


def test_a_request_counts_once(box: Box) -> None:
    first, second = listed(box, nonce=NONCE), listed(box, nonce=NONCE)

    assert first.status_code == 200
    assert (second.status_code, slug(second)) == (401, "request-replayed")


def test_two_devices_may_use_one_nonce(box: Box, lab: Account, ana: User) -> None:
    second = made.box(lab, ana, name="second")

    assert listed(box, nonce=NONCE).status_code == 200
    assert listed(second, nonce=NONCE).status_code == 200


def test_a_stranger_s_nonce_is_not_kept(box: Box) -> None:
    listed(box, nonce=NONCE, key=SigningKey.generate())

    assert not Nonce.objects.exists()
    assert listed(box, nonce=NONCE).status_code == 200


@pytest.mark.django_db(transaction=True)
def test_of_twenty_copies_of_one_request_one_counts() -> None:
    ana = factories.person()
    box = made.box(ana.account, ana)
    created = timezone.now()

    answers = at_once(*[lambda: listed(box, nonce=NONCE, created=created).status_code] * 20)

    assert sorted(answers) == [200] + [401] * 19


@pytest.mark.parametrize("nonce", ["short", "x" * 65, "with a blank in it ..."])
def test_a_nonce_of_another_form_is_refused(box: Box, nonce: str) -> None:
    assert listed(box, nonce=nonce).status_code == 401


def test_a_pending_and_an_unknown_device_are_answered_alike(box: Box, lab: Account, ana: User) -> None:
    pending = made.new_device(lab, ana, name="second").device

    answers = [
        box.get("/api/v1/devices/x/approvals", device_id=device_id)
        for device_id in (pending.pk, "dev_nobody", "nonsense", "dev_" + "x" * 200)
    ]

    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.content for answer in answers}) == 1


def test_a_revoked_device_is_told_so_if_it_holds_the_key(box: Box, ana: User) -> None:
    devices.revoke_device(device=box.device, reason="", by=factories.actor(ana), at=factories.NOON)

    own, stranger_s = listed(box), listed(box, key=SigningKey.generate())

    assert (own.status_code, slug(own)) == (401, "device-revoked")
    assert (stranger_s.status_code, slug(stranger_s)) == (401, "request-signature")
    assert not Nonce.objects.exists()


def test_a_device_does_not_see_another(box: Box, lab: Account, ana: User) -> None:
    second = made.box(lab, ana, name="second")

    assert box.get(f"{second.path}/approvals").status_code == 404
    assert box.post(f"{second.path}/events", second.heartbeat()).status_code == 404
    assert box.get("/api/v1/devices/dev_nobody/approvals").status_code == 404


def test_a_device_is_no_person_and_no_key(box: Box) -> None:
    paths = ["/api/v1/devices", box.path, "/api/v1/approvals", "/api/v1/me"]

    assert [box.get(path).status_code for path in paths] == [403] * 4


def test_a_person_and_a_key_are_no_device(box: Box, lab: Account, ana: User) -> None:
    browser, program = factories.client(ana), factories.key_client(factories.api_key(ana, account=lab))

    assert browser.get(f"{box.path}/approvals").status_code == 403
    assert program.get(f"{box.path}/approvals").status_code == 403
    assert factories.client().get(f"{box.path}/approvals").status_code == 401


def test_a_signature_of_somebody_else_s_is_not_meant_for_the_hub(box: Box, ana: User) -> None:
    foreign = {"Signature-Input": 'proxy=("@method");tag="other"', "Signature": "proxy=:AAAA:"}

    assert factories.client(ana).get(box.path, headers=foreign).status_code == 200


def test_a_device_is_seen_but_not_written_down_on_each_request(box: Box, settings: Settings) -> None:
    listed(box)
    first = Device.objects.get().last_seen_at
    listed(box)
    assert Device.objects.get().last_seen_at == first

    settings.DEVICE_SEEN_NOTED_EVERY = timedelta(0)
    listed(box)
    assert Device.objects.get().last_seen_at > first


def test_a_nonce_is_forgotten_when_its_request_is_too_old_to_count(box: Box) -> None:
    listed(box, nonce=NONCE)

    assert signatures.sweep_nonces(at=timezone.now() + timedelta(minutes=9)) == 0
    assert signatures.sweep_nonces(at=timezone.now() + timedelta(minutes=11)) == 1
