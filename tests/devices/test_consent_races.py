"""Requests, consents and revocations that meet."""

import pytest
from django.db import transaction

from devices.models import Approval, Device
from devices.services import approvals, devices
from devices.services.consent import (
    DeviceNotActive,
)
from hub.accounts.models import User
from hub.audit.models import Event
from tests import factories
from tests.devices import factories as made
from tests.devices.factories import ERRANDS, Box
from tests.factories import NOON
from tests.races import at_once


@pytest.fixture
def racing(transactional_db: None) -> tuple[Box, User, User]:
    ana = factories.person()
    lab = factories.org(owner=ana)
    return made.box(lab, ana), ana, factories.member("mo", org=lab)


def test_of_two_consents_at_once_one_is_given(racing) -> None:
    box, ana, mo = racing
    approval = made.requested(box.device, ana)

    answers = at_once(lambda: made.consent_to(approval, ana), lambda: made.consent_to(approval, mo))

    assert sorted(type(answer).__name__ for answer in answers) == ["Approval", "WrongState"]
    assert Event.objects.filter(action="approval.issued").count() == 1


def test_of_consent_and_refusal_at_once_one_counts(racing) -> None:
    box, ana, mo = racing
    approval = made.requested(box.device, ana)
    no = factories.actor(mo)

    at_once(
        lambda: made.consent_to(approval, ana),
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


def test_of_two_who_revoke_a_device_at_once_one_does(racing) -> None:
    box, ana, _ = racing
    who = factories.actor(ana)

    answers = at_once(*[lambda: devices.revoke_device(device=box.device, reason="", by=who, at=NOON)] * 4)

    assert sorted(type(answer).__name__ for answer in answers) == ["Device"] + ["WrongState"] * 3
