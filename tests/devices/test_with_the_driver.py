"""The driver's own client against this API over HTTP: both ends of the wire are the real ones."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.utils import timezone
from nacl.signing import SigningKey
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from devices import keys
from devices.models import Approval, Device
from driver import hub as client
from driver.answers import HubRefused
from driver.clock import Clock
from driver.hub import Hub
from driver.wire import base64url, canonical, signatures
from driver.wire.statements import check_go_on
from hub.accounts.models import User
from tests import factories
from tests.devices import factories as made
from tests.devices.factories import Box


@pytest.fixture
def ana(transactional_db: None) -> User:
    return factories.person()


@pytest.fixture
def url(live_server: LiveServer, settings: Settings) -> str:
    settings.PUBLIC_ORIGIN, settings.DEVICE_ORIGINS = live_server.url, [live_server.url]
    return str(live_server.url)


@pytest.fixture
def box(ana: User, url: str) -> Box:
    return made.box(ana.account, ana, at=timezone.now())


@pytest.fixture
def hub(box: Box, url: str) -> Iterator[Hub]:
    hub = Hub(url=url, device_id=box.device.pk, key=box.key, clock=Clock())
    with hub.http:
        yield hub


def sent(envelope: dict) -> bytes:
    return canonical.dumps(envelope)


def test_the_driver_enrols_twice_with_one_code_and_one_key(ana: User, url: str) -> None:
    new, key = made.new_device(ana.account, ana, at=timezone.now()), SigningKey.generate()
    envelope = sent(made.enrol_envelope(new.code, key))

    first, second = client.enrol(url, envelope), client.enrol(url, envelope)

    assert first == second
    assert first["device_id"] == new.device.pk
    assert Device.objects.get().state == "active"


def test_the_driver_reads_an_offer_and_is_told_to_go_on(hub: Hub, box: Box, ana: User) -> None:
    approval = made.issued(box.device, ana, at=timezone.now())

    (offer,) = hub.list_device_approvals("issued", "running")
    answers = [hub.post_device_event(sent(box.started(approval))), hub.confirm_approval(approval.pk)]

    assert offer.approval_id == approval.pk
    assert offer.contract == approval.checkpoint.contract.document  # type: ignore[union-attr]
    key = base64url.decode(keys.published(at=timezone.now())[0]["public_key"] or "")
    for answer in answers:
        signatures.verify(answer, key)
        check_go_on(answer["payload"])
    hub.post_device_event(sent(box.stopped(approval)))
    assert Approval.objects.get().state == "stopped"


def test_the_driver_is_told_the_last_number(hub: Hub, box: Box) -> None:
    hub.post_device_event(sent(box.event("journal_lost", {}, seq=9)))

    with pytest.raises(HubRefused) as refused:
        hub.post_device_event(sent(box.event("journal_lost", {"reason": "x"}, seq=2)))

    assert (refused.value.status, refused.value.slug, refused.value.last_seq) == (409, "seq-used", 9)


def test_a_driver_with_a_clock_years_off_corrects_itself_once(hub: Hub, box: Box) -> None:
    hub.clock = Clock(skew=timedelta(days=-365 * 20))

    assert hub.post_device_event(sent(box.heartbeat()))["seq"] == 1
    assert abs(hub.clock.skew) < timedelta(seconds=3)


def test_a_driver_with_another_key_is_refused_for_good(hub: Hub) -> None:
    hub.key = SigningKey.generate()

    with pytest.raises(HubRefused) as refused:
        hub.list_device_approvals("issued")

    assert (refused.value.status, refused.value.slug) == (401, "request-signature")
