"""What people and their programs read and change of devices and approvals."""

from datetime import timedelta

import pytest
from django.utils import timezone

from devices.models import Device
from devices.services import approvals, devices
from hub.accounts.models import Account, User
from hub.audit.models import Event
from tests import factories
from tests.devices import factories as made
from tests.devices.factories import Box
from tests.hub.campaigns import factories as campaigns


def test_members_operators_and_keys_read_devices_and_a_stranger_sees_none(
    box: Box, lab: Account, ana: User, mo: User, oto: User, eve: User
) -> None:
    reader = factories.key_client(factories.api_key(ana, account=lab, scopes=("key:read",)))
    for caller in (*map(factories.client, (ana, mo, oto)), reader):
        assert [item["id"] for item in caller.get("/api/v1/devices").json()["items"]] == [box.device.pk]
        assert caller.get(box.path).json()["name"] == "box"

    stranger = factories.client(eve)
    assert stranger.get("/api/v1/devices").json()["items"] == []
    assert stranger.get(box.path).content == stranger.get("/api/v1/devices/dev_nothing").content
    assert stranger.get(f"/api/v1/devices?account={lab.pk}").json()["items"] == []


def test_a_device_is_read_with_its_keys_and_its_last_word(box: Box, ana: User) -> None:
    box.tell(box.heartbeat(state="idle"))

    said = factories.client(ana).get(box.path).json()

    assert (said["state"], said["robot_slug"], said["heartbeat"]["state"]) == ("active", "stilt", "idle")
    assert said["heartbeat_at"] == "2026-01-05T12:00:00.000Z"
    assert [key["active_until"] for key in said["keys"]] == [None]
    assert not {"enrol_code_sha256", "enrol_handle"} & set(said)


def test_devices_are_listed_in_as_many_queries_as_one(
    lab: Account, ana: User, django_assert_max_num_queries
) -> None:
    for number in range(4):
        made.box(lab, ana, name=f"box {number}")
    browser = factories.client(ana)

    with django_assert_max_num_queries(7):
        assert len(browser.get("/api/v1/devices").json()["items"]) == 4


def test_an_owner_changes_name_and_contracts_and_the_record_says_what(box: Box, ana: User) -> None:
    wanted = {"name": "blue box", "accepted_contracts": ["stilt@50", "stilt@50"]}

    said = factories.client(ana).patch(box.path, wanted).json()

    assert (said["name"], said["accepted_contracts"]) == ("blue box", ["stilt@50"])
    sentence = Event.objects.get(action="device.changed").sentence
    assert sentence == "ana@lab.test changed the device blue box: it has a new name, it accepts stilt@50."


def test_a_change_that_changes_nothing_is_not_in_the_record(box: Box, ana: User) -> None:
    assert factories.client(ana).patch(box.path, {"name": "box"}).status_code == 200
    assert factories.client(ana).patch(box.path, {}).status_code == 200

    assert not Event.objects.filter(action="device.changed").exists()


@pytest.mark.parametrize(
    "change", [{"name": None}, {"name": ""}, {"state": "revoked"}, {"accepted_contracts": ["nonsense"]}]
)
def test_a_change_that_does_not_fit_is_422(box: Box, ana: User, change: dict) -> None:
    assert factories.client(ana).patch(box.path, change).status_code == 422


def test_only_an_owner_changes_or_revokes_a_device(
    box: Box, lab: Account, ana: User, mo: User, oto: User, eve: User
) -> None:
    program = factories.key_client(factories.api_key(ana, account=lab))
    for caller, status in (
        (factories.client(mo), 403),
        (factories.client(oto), 403),
        (program, 403),
        (factories.client(eve), 404),
    ):
        assert caller.patch(box.path, {"nonsense": 1}).status_code == status
        assert caller.post(f"{box.path}/revoke", {"nonsense": 1}).status_code == status


def test_a_revoked_device_signs_for_nothing_any_more(box: Box, ana: User) -> None:
    browser = factories.client(ana)

    revoked = browser.post(f"{box.path}/revoke", {"reason": "stolen"})

    assert (revoked.status_code, revoked.json()["state"]) == (200, "revoked")
    assert box.get(f"{box.path}/approvals").status_code == 401
    assert Event.objects.get(action="device.revoked").sentence.endswith("revoked the device box: stolen.")
    assert browser.post(f"{box.path}/revoke").status_code == 409


# Which device


def test_the_one_device_that_takes_every_contract_is_found(
    box: Box, lab: Account, ana: User, eve: User
) -> None:
    contract = made.contract_of(box.device)
    made.box(lab, ana, name="accepts nothing", accepts=[])
    made.new_device(lab, ana, name="pending")
    made.box(eve.account, eve)

    assert devices.device_for(owner=lab, contracts=[contract]) == box.device
    assert devices.device_for(owner=lab, contracts=[contract, contract]) == box.device


def test_of_two_devices_that_fit_none_is_picked(box: Box, lab: Account, ana: User) -> None:
    made.box(lab, ana, name="second", accepts=["stilt@50"])

    assert devices.device_for(owner=lab, contracts=[made.contract_of(box.device)]) is None


def test_a_device_that_takes_only_some_is_not_picked(box: Box, lab: Account) -> None:
    other = campaigns.contract(campaigns.robot(lab, slug="other"))

    assert devices.device_for(owner=lab, contracts=[made.contract_of(box.device), other]) is None


def test_a_revoked_device_is_not_picked(box: Box, lab: Account, ana: User) -> None:
    devices.revoke_device(device=box.device, reason="", by=factories.actor(ana), at=factories.NOON)

    assert devices.device_for(owner=lab, contracts=[made.contract_of(box.device)]) is None


# Approvals


def test_an_approval_is_read_with_what_a_page_says_of_it(box: Box, ana: User, oto: User) -> None:
    now = timezone.now()
    approval = made.issued(box.device, ana, at=now)

    said = factories.client(oto).get(f"/api/v1/approvals/{approval.pk}").json()

    assert said["about"] == f"the errand with {approval.checkpoint}"
    assert (said["state"], said["requested_by"], said["issued_by"]) == (
        "issued",
        "ana@lab.test",
        "ana@lab.test",
    )
    assert said["is_self_approved"] is True
    assert said["run_sheet_sha256"] == made.digest_of(approval)
    assert said["accepted_as"] == made.contract_of(box.device).name
    assert said["checkpoint"]["onnx_sha256"] == approval.onnx_sha256
    assert said["expires_at"] > said["issued_at"]
    assert not {"token", "document"} & set(said)


def test_a_request_says_that_any_contract_of_a_rate_is_taken(lab: Account, ana: User) -> None:
    box = made.box(lab, ana, accepts=["stilt@50"])
    approval = made.requested(box.device, ana)

    said = factories.client(ana).get(f"/api/v1/approvals/{approval.pk}").json()

    assert said["accepted_as"] == "stilt@50"


def test_what_ran_out_reads_expired_before_any_sweep(box: Box, ana: User) -> None:
    old = made.requested(box.device, ana, at=timezone.now() - timedelta(days=8))
    new = made.requested(box.device, ana, at=timezone.now())
    browser = factories.client(ana)

    def listed(states: str) -> list[str]:
        return [item["id"] for item in browser.get(f"/api/v1/approvals?state={states}").json()["items"]]

    assert browser.get(f"/api/v1/approvals/{old.pk}").json()["state"] == "expired"
    assert listed("requested") == [new.pk]
    assert listed("expired") == [old.pk]
    assert listed("requested,expired") == [new.pk, old.pk]


def test_filters_only_narrow(box: Box, lab: Account, ana: User, eve: User) -> None:
    second = made.box(lab, ana, name="second")
    first, other = made.requested(box.device, ana), made.requested(second.device, ana)
    browser, stranger = factories.client(ana), factories.client(eve)

    def listed(caller, query: str) -> list[str]:
        return [item["id"] for item in caller.get(f"/api/v1/approvals{query}").json()["items"]]

    assert listed(browser, "") == [other.pk, first.pk]
    assert listed(browser, f"?device={box.device.pk}") == [first.pk]
    assert listed(browser, f"?subject={other.subject_id}") == [other.pk]
    assert listed(stranger, f"?device={box.device.pk}") == []
    assert stranger.get(f"/api/v1/approvals/{first.pk}").status_code == 404
    assert browser.get("/api/v1/approvals?owner=x").status_code == 422


def test_approvals_are_listed_in_as_many_queries_as_one(
    box: Box, ana: User, django_assert_max_num_queries
) -> None:
    for _ in range(4):
        made.issued(box.device, ana, at=timezone.now())
    browser = factories.client(ana)

    with django_assert_max_num_queries(5):
        assert len(browser.get("/api/v1/approvals").json()["items"]) == 4


def test_a_run_that_was_asked_to_stop_reads_running_and_since_when_there_is_no_word(
    box: Box, ana: User
) -> None:
    now = timezone.now()
    approval = made.running(box, ana, at=now)
    box.get(f"{box.path}/approvals")
    approvals.revoke_approval(approval=approval, reason="", by=factories.actor(ana), at=now)

    said = factories.client(ana).get(f"/api/v1/approvals/{approval.pk}").json()

    assert (said["state"], said["stop_requested_by"]) == ("running", "ana@lab.test")
    assert said["stop_requested_at"] is not None
    assert said["stopped_at"] is None
    assert said["last_word_at"] is not None


def test_a_device_of_a_sold_robot_is_seen_by_its_new_owner_alone(box: Box, ana: User, eve: User) -> None:
    approval = made.requested(box.device, ana)
    Device.objects.update(owner=eve.account)

    assert factories.client(ana).get(f"/api/v1/approvals/{approval.pk}").status_code == 404
    assert factories.client(eve).get(f"/api/v1/approvals/{approval.pk}").status_code == 200
