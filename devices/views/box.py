"""What a robot box calls: it enrols, says what happens, and asks what it may run."""

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from devices import statements
from devices.hub import about_the_hub, pinned_by_devices
from devices.models import Approval, Device
from devices.serializers import (
    DeviceAnswer,
    EnrolAnswer,
    Envelope,
    EventAnswer,
    OfferAnswer,
    OfferQuery,
    SignedAnswer,
)
from devices.services import enrolment, events, runs
from devices.subjects import OutOfOrder
from hub.accounts.api import HubView, operation
from hub.core import problems
from hub.core.lifecycle import WrongState
from hub.core.problems import Problem
from hub.storage.s3 import StorageUnavailable

SIGNED: tuple[type[Problem], ...] = (statements.StatementInvalid, statements.WrongSignature)


class DeviceEnrol(HubView):
    @operation(
        "enrolDevice",
        who="A",
        body=Envelope,
        answer=EnrolAnswer,
        problems=[
            *SIGNED,
            enrolment.KeyRefused,
            enrolment.EnrolmentRefused,
            enrolment.KeyTaken,
            StorageUnavailable,
        ],
    )
    def post(self, request: Request) -> Response:
        """Take a device's place with a code and a key; the answer is what the box pins."""
        self.body()
        pins = pinned_by_devices(at=self.at)  # first: a box that enrols and gets no answer has to come again
        device = enrolment.enrol_device(envelope=self.parsed, at=self.at)
        return self.answer({"device_id": device.pk, "hub": pins})


class DeviceKeys(HubView):
    @operation(
        "rotateDeviceKey",
        who="D",
        body=Envelope,
        answer=DeviceAnswer,
        problems=[*SIGNED, statements.NotBound, enrolment.KeyRefused, enrolment.KeyTaken],
    )
    def post(self, request: Request, device_id: str) -> Response:
        """Let a new key take over; the old one signs the change, the new one proves itself inside."""
        device = self.find(Device.objects.visible_to(self.by), device_id)
        self.body()
        enrolment.rotate_device_key(device=device, envelope=self.parsed, at=self.at)
        return self.answer(device)


class DeviceEvents(HubView):
    @operation(
        "postDeviceEvent",
        who="D",
        body=Envelope,
        answer=EventAnswer,
        problems=[
            *SIGNED,
            statements.NotBound,
            events.SeqUsed,
            WrongState,
            OutOfOrder,
            runs.DeviceBusy,
            runs.NotStarted,
        ],
    )
    def post(self, request: Request, device_id: str) -> Response:
        """Say what happens at the robot. The same bytes get the same answer, however often they are sent."""
        device = self.find(Device.objects.visible_to(self.by), device_id)
        self.body()
        return self.answer(events.post_event(device=device, envelope=self.parsed, at=self.at))


class DeviceApprovals(HubView):
    @operation(
        "listDeviceApprovals",
        who="D",
        query=OfferQuery,
        answer=OfferAnswer,
        listed=True,
        problems=[StorageUnavailable],
    )
    def get(self, request: Request, device_id: str) -> Response:
        """What this box may run, and what it runs; `state` asks for others."""
        device = self.find(Device.objects.visible_to(self.by), device_id)
        states = self.query().get("state", Approval.STARTABLE)
        found = device.approvals.standing(states, at=self.at)
        return self.page(found.select_related("checkpoint__object", "checkpoint__contract"))


class ApprovalConfirm(HubView):
    @operation("confirmApproval", who="D", answer=SignedAnswer)
    def post(self, request: Request, approval_id: str) -> Response:
        """Ask whether a run may go on to its next stage. The answer is signed, and seconds old at most."""
        approval = self.find(Approval.objects.visible_to(self.by), approval_id)
        return self.answer(runs.confirm(approval=approval, at=self.at))


def well_known(request: HttpRequest) -> HttpResponse:
    """/.well-known/trial-hub.json: the hub's keys, old ones too, and where its API is."""
    try:
        return JsonResponse(about_the_hub(at=timezone.now()))
    except Problem as problem:
        return problems.answer(problem)
