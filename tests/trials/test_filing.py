"""Consent requests of a session (C4-09), the order at the robot (C4-02), and calling a session off."""

from datetime import timedelta

import pytest

from devices.models import Approval, Device
from devices.services.consent import ContractNotAccepted, DeviceNotActive
from devices.services.devices import revoke_device, update_device
from devices.services.runs import DeviceBusy
from devices.subjects import OutOfOrder
from hub.audit import services as audit
from hub.audit.models import Event
from tests.devices import factories as devices
from tests.factories import NOON, actor
from tests.trials import factories as made
from tests.trials.factories import MINUTE, Bench
from trials.models import TrialSession
from trials.services import sessions
from trials.services.filing import OnAnotherDevice, SessionCancelled
from trials.services.sessions import SessionUnderWay

LATER = NOON + timedelta(hours=13)  # after every token of NOON


@pytest.fixture
def unfiled(bench: Bench) -> TrialSession:
    """A session without a device: two would fit."""
    devices.box(bench.owner, bench.by, robot=bench.campaign.robot, name="second")
    return bench.decide()


def test_c4_09_naming_a_device_later_files_one_request_a_trial(bench: Bench, unfiled: TrialSession) -> None:
    bench.file(unfiled)

    trials = made.trials_of(unfiled)
    assert [trial.approval.state for trial in trials] == ["requested"] * 4
    assert [trial.approval.onnx_sha256 for trial in trials] == [
        trial.checkpoint.onnx_sha256 for trial in trials
    ]
    assert {trial.approval.reason for trial in trials} == {made.REASON}
    unfiled.refresh_from_db()
    assert unfiled.device == bench.device


def test_c4_09_repeating_it_changes_nothing(bench: Bench, unfiled: TrialSession) -> None:
    bench.file(unfiled)
    before = [list(model.objects.order_by("pk").values()) for model in (Approval, Event)]

    bench.file(unfiled, at=NOON + MINUTE)

    assert [list(model.objects.order_by("pk").values()) for model in (Approval, Event)] == before


def test_c4_09_a_contract_that_is_not_accepted_names_the_trial_and_files_nothing(
    bench: Bench, unfiled: TrialSession
) -> None:
    update_device(device=bench.device, changes={"accepted_contracts": []}, by=actor(bench.by), at=NOON)

    with pytest.raises(ContractNotAccepted) as refused:
        bench.file(unfiled)

    assert refused.value.members["trial"] == made.trials_of(unfiled)[0].pk
    assert refused.value.members["position"] == 1
    unfiled.refresh_from_db()
    assert unfiled.device is None
    assert not Approval.objects.exists()


def test_nothing_is_filed_for_a_device_that_is_not_active(bench: Bench, unfiled: TrialSession) -> None:
    revoke_device(device=bench.device, reason="sold", by=actor(bench.by), at=NOON)

    with pytest.raises(DeviceNotActive):
        bench.file(unfiled)

    assert not Approval.objects.exists()


def test_a_session_stays_on_its_device(bench: Bench, unfiled: TrialSession) -> None:
    bench.file(unfiled)

    with pytest.raises(OnAnotherDevice):
        bench.file(unfiled, device=Device.objects.get(name="second"))


@pytest.mark.parametrize("ended", ["declined", "expired", "revoked"])
def test_c4_09_a_trial_whose_approval_ended_without_a_start_is_asked_for_again(
    bench: Bench, ended: str
) -> None:
    session = bench.decide()
    first = made.trials_of(session)[0]
    at = NOON
    if ended == "declined":
        bench.decline(first)
    if ended == "revoked":
        bench.consent(first)
        bench.revoke(first)
    if ended == "expired":
        bench.consent(first)
        at = LATER

    bench.file(session, at=at)

    again = made.fresh(first).approval
    assert again.pk != first.approval_id
    assert again.state == "requested"
    assert Approval.objects.of("trial", first.pk).count() == 2


def test_c4_09_after_a_consent_the_new_approval_pins_the_same_digest(bench: Bench) -> None:
    session = bench.decide()
    first = made.trials_of(session)[0]
    earlier = bench.consent(first)
    bench.revoke(first)
    bench.file(session)

    again = bench.consent(first, at=NOON + MINUTE)

    assert again.document_sha256 == earlier.document_sha256
    assert bytes(again.document) == bytes(earlier.document)
    assert made.fresh(first).run_sheet.locked_at == NOON


def test_c4_09_once_a_later_trial_has_started_a_closed_one_stays_closed(bench: Bench) -> None:
    session = bench.decide()
    first, second, *_ = made.trials_of(session)
    bench.decline(first)
    bench.consent(second)
    bench.start(second)

    bench.file(session)

    assert made.fresh(first).approval.state == "declined"
    assert Approval.objects.of("trial", first.pk).count() == 1


def test_c4_02_a_run_out_of_order_is_refused_naming_the_trial_that_comes_first(bench: Bench) -> None:
    first, second, *_ = made.trials_of(bench.decide())
    bench.consent(first)
    bench.consent(second)

    with pytest.raises(OutOfOrder) as refused:
        bench.start(second)

    assert refused.value.members["trial"] == first.pk
    assert made.fresh(second).approval.state == "issued"


def test_c4_02_a_later_trial_starts_when_all_before_it_have_stopped_or_are_closed(bench: Bench) -> None:
    first, second, third, _ = made.trials_of(bench.decide())
    bench.run(first)
    bench.decline(second)
    bench.consent(third)

    bench.start(third)

    assert made.fresh(third).approval.state == "running"


def test_c4_02_a_consent_that_ran_out_is_in_nobodys_way_before_any_sweep(bench: Bench) -> None:
    first, second, *_ = made.trials_of(bench.decide())
    bench.consent(first)
    bench.consent(second, at=LATER - MINUTE)

    bench.start(second, at=LATER)

    assert made.fresh(first).approval.state == "issued"
    assert made.fresh(second).approval.state == "running"


def test_c4_02_nothing_starts_while_another_approval_of_the_device_runs(bench: Bench) -> None:
    first = made.trials_of(bench.decide())[0]
    other = made.trials_of(bench.session())[0]
    for trial in (first, other):
        bench.consent(trial)
    bench.start(first)

    with pytest.raises(DeviceBusy):
        bench.start(other)


def test_cancelling_withdraws_what_is_requested_and_nothing_is_filed_afterwards(bench: Bench) -> None:
    session = bench.decide()
    bench.decline(made.trials_of(session)[0])

    sessions.cancel_session(session=session, by=actor(bench.by), at=NOON + MINUTE)

    states = [trial.approval.state for trial in made.trials_of(session)]
    assert states == ["declined", "withdrawn", "withdrawn", "withdrawn"]
    with pytest.raises(SessionCancelled):
        bench.file(session)


def test_cancelling_twice_changes_nothing(bench: Bench) -> None:
    session = bench.decide()
    sessions.cancel_session(session=session, by=actor(bench.by), at=NOON)

    again = sessions.cancel_session(session=session, by=actor(bench.by), at=NOON + MINUTE)

    assert again.cancelled_at == NOON
    assert Event.objects.filter(action="session.cancelled").count() == 1


@pytest.mark.parametrize("how_far", ["consented", "running", "stopped"])
def test_a_session_is_not_cancelled_while_consent_is_given_or_once_it_ran(bench: Bench, how_far: str) -> None:
    session = bench.decide()
    first = made.trials_of(session)[0]
    bench.consent(first)
    if how_far != "consented":
        bench.start(first)
    if how_far == "stopped":
        bench.stop(first)

    with pytest.raises(SessionUnderWay):
        sessions.cancel_session(session=session, by=actor(bench.by), at=NOON)

    session.refresh_from_db()
    assert session.cancelled_at is None
    assert made.trials_of(session)[1].approval.state == "requested"


def test_a_session_whose_consent_ran_out_can_be_cancelled(bench: Bench) -> None:
    session = bench.decide()
    bench.consent(made.trials_of(session)[0])

    cancelled = sessions.cancel_session(session=session, by=actor(bench.by), at=LATER)

    assert cancelled.cancelled_at == LATER


@pytest.mark.parametrize("act", ["file", "cancel"])
def test_without_its_audit_event_the_act_does_not_land(
    bench: Bench, unfiled: TrialSession, monkeypatch: pytest.MonkeyPatch, act: str
) -> None:
    monkeypatch.setattr(audit, "record", lambda *a, **k: 1 / 0)
    acts = {
        "file": lambda: bench.file(unfiled),
        "cancel": lambda: sessions.cancel_session(session=unfiled, by=actor(bench.by), at=NOON),
    }

    with pytest.raises(ZeroDivisionError):
        acts[act]()

    unfiled.refresh_from_db()
    assert (unfiled.device, unfiled.cancelled_at) == (None, None)
    assert not Approval.objects.exists()
