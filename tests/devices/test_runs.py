"""Starting, going on and stopping: nobody but the box starts a run, and nobody but the robot stops one."""

from datetime import timedelta

import pytest
from django.utils import timezone

from devices import keys
from devices.models import Approval, Device
from devices.services import approvals, devices, runs
from devices.services.consent import DeviceNotActive
from devices.services.runs import DeviceBusy
from devices.subjects import OutOfOrder
from driver.wire import moments, signatures
from driver.wire.statements import check_go_on
from hub.accounts.models import User
from hub.audit.models import Event
from hub.core.lifecycle import WrongState
from tests import factories
from tests.devices import factories as made
from tests.devices.factories import ERRANDS, Box
from tests.factories import NOON
from tests.races import at_once


def go_on(answer: dict, *, at=NOON) -> dict:
    """The payload of the hub's word, after checking what a driver checks."""
    signatures.verify(answer, keys.signing_key(at=at).public_key)
    check_go_on(answer["payload"])
    return answer["payload"]


def revoke(approval: Approval, by: User, *, at=NOON) -> Approval:
    return approvals.revoke_approval(approval=approval, reason="too warm", by=factories.actor(by), at=at)


def test_a_start_is_answered_with_a_signed_go_on(box: Box, ana: User) -> None:
    approval = made.issued(box.device, ana)

    said = go_on(box.tell(box.started(approval), at=NOON))

    assert said == {"approval_id": approval.pk, "go_on": True, "reason": None, "at": moments.write(NOON)}
    approval.refresh_from_db()
    assert (approval.state, approval.started_at) == ("running", NOON)
    assert approval.started_with == box.device.keys.get()


def test_a_second_start_of_a_run_is_refused(box: Box, ana: User) -> None:
    approval = made.running(box, ana)

    with pytest.raises(WrongState) as refused:
        box.tell(box.started(approval))

    assert (refused.value.members["state"], refused.value.members["wanted"]) == ("running", "running")


def test_a_start_out_of_order_is_refused_and_names_what_comes_first(box: Box, ana: User, monkeypatch) -> None:
    approval = made.issued(box.device, ana)
    monkeypatch.setattr(ERRANDS, "too_early", {approval.subject_id})

    with pytest.raises(OutOfOrder) as refused:
        box.tell(box.started(approval))

    assert (refused.value.status, refused.value.slug) == (409, "out-of-order")
    assert refused.value.members["trial"] == "trl_first"
    assert Approval.objects.get().state == "issued"


def test_a_device_runs_one_thing_at_a_time(box: Box, ana: User) -> None:
    first, second = made.running(box, ana), made.issued(box.device, ana)

    with pytest.raises(DeviceBusy) as refused:
        box.tell(box.started(second))
    assert refused.value.members["approval"] == first.pk

    box.tell(box.stopped(first))
    assert go_on(box.tell(box.started(second)))["go_on"] is True


def test_a_device_that_is_not_active_starts_nothing(box: Box, ana: User) -> None:
    approval = made.issued(box.device, ana)
    Device.objects.update(state="revoked", revoked_at=NOON)

    with pytest.raises(DeviceNotActive):
        box.tell(box.started(approval))


@pytest.mark.parametrize(("hours", "starts"), [(11.99, True), (12, False)])
def test_a_token_starts_within_twelve_hours(box: Box, ana: User, hours: float, starts: bool) -> None:
    approval = made.issued(box.device, ana)
    at = NOON + timedelta(hours=hours)

    if starts:
        assert go_on(box.tell(box.started(approval), at=at))["go_on"] is True
    else:
        with pytest.raises(WrongState):
            box.tell(box.started(approval), at=at)


def test_a_run_may_go_on_after_its_latest_start(box: Box, ana: User) -> None:
    approval = made.running(box, ana)

    assert go_on(runs.confirm(approval=approval, at=NOON + timedelta(hours=20)))["go_on"] is True


def test_a_run_whose_consent_was_taken_back_may_not_go_on(box: Box, ana: User) -> None:
    approval = made.running(box, ana)
    revoke(approval, ana)

    said = go_on(runs.confirm(approval=approval, at=NOON))

    assert said["go_on"] is False
    assert said["reason"] == "revoked: ana@lab.test asked to stop"


def test_a_run_of_a_revoked_device_may_not_go_on(box: Box, ana: User) -> None:
    approval = made.running(box, ana)
    Device.objects.update(state="revoked", revoked_at=NOON)

    assert go_on(runs.confirm(approval=approval, at=NOON))["reason"] == "the device is revoked"


@pytest.mark.parametrize("state", ["requested", "issued", "stopped"])
def test_what_does_not_run_may_not_go_on(box: Box, ana: User, state: str) -> None:
    approval = {
        "requested": lambda: made.requested(box.device, ana),
        "issued": lambda: made.issued(box.device, ana),
        "stopped": lambda: made.stopped(box, ana),
    }[state]()

    said = go_on(runs.confirm(approval=approval, at=NOON))

    assert (said["go_on"], said["reason"]) == (False, f"the approval is {state}")


def test_the_word_on_going_on_is_fresh_each_time(box: Box, ana: User) -> None:
    approval = made.running(box, ana, at=timezone.now())
    path = f"/api/v1/approvals/{approval.pk}/confirm"

    first, second = (box.post(path).json()["payload"]["at"] for _ in range(2))

    assert second > first
    assert timezone.now() - moments.read(second) < timedelta(seconds=10)


def test_another_box_is_not_told_whether_a_run_goes_on(box: Box, ana: User, lab) -> None:
    approval, second = made.running(box, ana), made.box(lab, ana, name="second")

    assert second.post(f"/api/v1/approvals/{approval.pk}/confirm").status_code == 404


def test_revoking_what_runs_asks_to_stop_and_leaves_it_running(box: Box, ana: User) -> None:
    approval = revoke(made.running(box, ana), ana)

    assert (approval.state, approval.stop_requested_at) == ("running", NOON)
    said = Event.objects.get(action="approval.stop-requested").sentence
    assert said == f"ana@lab.test asked the robot to stop {approval.about} on box: too warm."


def test_asking_again_to_stop_gets_the_same_answer(box: Box, ana: User, mo: User) -> None:
    approval = made.running(box, ana)
    first = revoke(approval, ana)

    second = revoke(approval, mo, at=NOON + timedelta(minutes=1))

    assert (second.stop_requested_at, second.stop_requested_by) == (NOON, "ana@lab.test")
    assert first.stop_requested_at == second.stop_requested_at
    assert Event.objects.filter(action="approval.stop-requested").count() == 1


def test_a_revocation_decides_on_what_is_true_now_not_on_what_was_read(box: Box, ana: User) -> None:
    read_before = made.issued(box.device, ana)
    box.tell(box.started(read_before))

    assert revoke(read_before, ana).state == "running"
    assert Approval.objects.get().stop_requested_at == NOON


def test_only_the_robot_s_word_makes_it_stopped(box: Box, ana: User) -> None:
    approval = revoke(made.running(box, ana), ana)

    box.tell(box.stopped(approval), at=NOON + timedelta(seconds=2))

    approval.refresh_from_db()
    assert (approval.state, approval.stopped_by) == ("stopped", "revoked")
    assert approval.stopped_at == NOON + timedelta(seconds=2)
    said = Event.objects.get(action="approval.stopped").sentence
    assert said == f"The robot stopped {approval.about} on box, as ana@lab.test had asked."


def test_what_the_robot_said_of_its_last_stage_is_kept_with_the_stop(box: Box, ana: User) -> None:
    approval = made.running(box, ana)
    last = {"stage": "floor", "at_s": 3.1, "status": "aborted", "reason": "tilt_deg > 45"}
    box.tell(box.event("stage_finished", last, approval=approval))

    box.tell(box.stopped(approval))

    approval.refresh_from_db()
    assert (approval.stopped_by, approval.stopped_reason) == ("", "floor: aborted: tilt_deg > 45")


def test_a_refused_start_over_http_is_a_problem_with_its_reason(box: Box, ana: User) -> None:
    response = box.post(f"{box.path}/events", box.started(made.requested(box.device, ana, at=timezone.now())))

    assert response.status_code == 409
    assert response["Content-Type"] == "application/problem+json"
    assert (response.json()["state"], response.json()["wanted"]) == ("requested", "running")


@pytest.fixture
def racing(transactional_db: None) -> tuple[Box, User]:
    ana = factories.person()
    return made.box(ana.account, ana), ana


def test_of_a_start_and_a_revocation_at_once_the_robot_runs_only_what_it_can_be_told_to_stop(racing) -> None:
    box, ana = racing
    approval = made.issued(box.device, ana)
    started = box.started(approval)

    start, _ = at_once(lambda: box.tell(started), lambda: revoke(approval, ana))

    approval.refresh_from_db()
    if approval.state == "running":
        assert go_on(start)["go_on"] is True
        assert approval.stop_requested_at is not None
    else:
        assert approval.state == "revoked"
        assert isinstance(start, WrongState)


def test_of_two_starts_at_once_one_runs(racing) -> None:
    box, ana = racing
    started = [box.started(made.issued(box.device, ana)) for _ in range(2)]
    started[1]["payload"]["seq"] += 1

    at_once(*[lambda envelope=envelope: box.tell(envelope) for envelope in started])

    assert Approval.objects.filter(state="running").count() == 1


def test_of_a_start_and_the_end_of_the_device_at_once_nothing_runs_unasked(racing) -> None:
    box, ana = racing
    approval = made.issued(box.device, ana)
    started, who = box.started(approval), factories.actor(ana)

    at_once(
        lambda: box.tell(started),
        lambda: devices.revoke_device(device=box.device, reason="", by=who, at=NOON),
    )

    approval.refresh_from_db()
    assert approval.state == "revoked" or approval.stop_requested_at is not None
