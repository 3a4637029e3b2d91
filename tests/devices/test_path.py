"""The whole way over HTTP: enrol, ask, consent, list, start, confirm, stop."""

from django.utils import timezone
from nacl.signing import SigningKey

from devices.models import Approval, Device
from driver.wire import base64url, signatures
from hub.accounts.models import Account, User
from tests import factories
from tests.devices import factories as made
from tests.devices.factories import Box
from tests.hub.campaigns import factories as campaigns


def test_a_box_enrols_and_runs_what_a_person_consented_to(lab: Account, ana: User) -> None:
    browser, key = factories.client(ana), SigningKey.generate()
    robot = campaigns.robot(lab)
    wanted = {"robot": robot.pk, "name": "box", "accepted_contracts": [campaigns.contract(robot).name]}

    created = browser.post("/api/v1/devices", {"account": lab.pk, **wanted}).json()
    envelope = made.enrol_envelope(created["code"], key)
    pins = factories.client().post("/api/v1/devices/enrol", envelope).json()["hub"]
    hub_keys = {each["kid"]: base64url.decode(each["public_key"]) for each in pins["keys"]}

    box = Box(device=Device.objects.get(pk=created["device_id"]), key=key)
    approval = made.requested(box.device, ana, at=timezone.now())
    consent = {"run_sheet_sha256": made.digest_of(approval)}
    assert browser.post(f"/api/v1/approvals/{approval.pk}/issue", consent).status_code == 200

    (offer,) = box.get(f"{box.path}/approvals").json()["items"]
    signatures.verify(offer["token"], hub_keys[offer["token"]["kid"]])
    for answer in (
        box.post(f"{box.path}/events", box.started(approval)).json(),
        box.post(f"/api/v1/approvals/{approval.pk}/confirm").json(),
    ):
        signatures.verify(answer, hub_keys[answer["kid"]])
        assert answer["payload"]["go_on"] is True
    assert box.post(f"{box.path}/events", box.stopped(approval)).json()["seq"] == 2
    assert Approval.objects.get().state == "stopped"
