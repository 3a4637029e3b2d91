from rest_framework.request import Request
from rest_framework.response import Response

from devices.models import Device
from devices.serializers import (
    CreateDevice,
    DeviceAnswer,
    DeviceQuery,
    NewDeviceAnswer,
    Reason,
    UpdateDevice,
)
from devices.services import devices, enrolment
from hub.accounts import permissions
from hub.accounts.api import HubView, operation
from hub.accounts.models import Account
from hub.campaigns.models import Robot
from hub.core.lifecycle import WrongState


class Devices(HubView):
    @operation("listDevices", who="SR", query=DeviceQuery, answer=DeviceAnswer, listed=True)
    def get(self, request: Request) -> Response:
        """The robot boxes of my accounts."""
        return self.page(Device.objects.visible_to(self.by).with_keys().filter(**self.query()))

    @operation("createDevice", who="S", body=CreateDevice, answer=NewDeviceAnswer, status=201)
    def post(self, request: Request) -> Response:
        """Add a robot box. The code with which it enrols is shown this once."""
        body = self.body()
        new = enrolment.create_device(
            owner=self._account(body.get("account")),
            robot=self.find(Robot.objects.visible_to(self.by), body["robot"]),
            name=body["name"],
            accepted_contracts=body.get("accepted_contracts", []),
            by=self.by,
            at=self.at,
        )
        return self.answer(new)

    def _account(self, pk: str | None) -> Account:
        accounts = self.by.accounts()
        account = self.find(accounts, pk) if pk else accounts.get(person=self.by.user)
        permissions.may_manage(self.by, account)
        return account


class OneDevice(HubView):
    @operation("getDevice", who="SR", answer=DeviceAnswer)
    def get(self, request: Request, device_id: str) -> Response:
        """One robot box, its keys since it enrolled, and its last word."""
        return self.answer(self.find(Device.objects.visible_to(self.by).with_keys(), device_id))

    @operation("updateDevice", who="S", body=UpdateDevice, answer=DeviceAnswer)
    def patch(self, request: Request, device_id: str) -> Response:
        """Change a box's name, or the contracts it accepts."""
        device = self.find(Device.objects.visible_to(self.by), device_id)
        permissions.may_manage(self.by, device.owner)
        changed = devices.update_device(device=device, changes=self.body(), by=self.by, at=self.at)
        return self.answer(changed)


class DeviceRevoke(HubView):
    @operation("revokeDevice", who="S", body=Reason, answer=DeviceAnswer, problems=[WrongState])
    def post(self, request: Request, device_id: str) -> Response:
        """End a box for good. What runs on it is asked to stop; what was permitted is not any more."""
        device = self.find(Device.objects.visible_to(self.by), device_id)
        permissions.may_manage(self.by, device.owner)
        reason = self.body()["reason"] if self.raw else ""
        revoked = devices.revoke_device(device=device, reason=reason, by=self.by, at=self.at)
        return self.answer(revoked)
