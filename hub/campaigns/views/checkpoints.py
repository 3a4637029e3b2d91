from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hub.accounts import permissions
from hub.accounts.api import HubView, operation
from hub.campaigns.models import Campaign, Checkpoint, Contract, RoundResult
from hub.campaigns.schemas import ContractTable
from hub.campaigns.services import checkpoints
from hub.campaigns.services.lineage import LineageEnded
from hub.campaigns.views.rounds import SimAnswer
from hub.core import fields
from hub.storage.s3 import ObjectMissing, StorageUnavailable
from hub.storage.services import NotReserved, OverQuota


class CheckpointQuery(fields.Body):
    run = fields.Text(max_length=120, source="run__name", required=False)
    step = fields.QueryInteger(min_value=0, required=False)
    lineage = fields.Choice(["open", "ended"], required=False)


class CreateCheckpoint(fields.Body):
    """What is going to be uploaded. The sidecar says of the contract what the file does not."""

    run = fields.Text(max_length=120)
    step = fields.Integer(min_value=0, max_value=fields.MAX_NUMBER)
    bytes = fields.Integer(min_value=1, max_value=fields.MAX_NUMBER)
    onnx_sha256 = fields.Sha256()
    sidecar = ContractTable(required=False, allow_null=True)
    parent = fields.Text(max_length=32, required=False, allow_null=True)  # type: ignore[assignment]


class ContractAnswer(serializers.Serializer[Contract]):
    name = fields.Text()
    document = ContractTable()


class SimInRound(serializers.Serializer[RoundResult]):
    round = fields.Text(source="round_id")
    number = fields.Integer(source="round.number")
    sim = SimAnswer()


class CheckpointAnswer(serializers.Serializer[Checkpoint]):
    """A checkpoint; its contract once it is verified, and what each locked round says of it, newest first."""

    id = fields.Text()
    campaign = fields.Text(source="run.campaign_id")
    run = fields.Text(source="run.name")
    step = fields.Integer(max_value=fields.MAX_NUMBER)
    parent = fields.Text(source="parent_id", allow_null=True)  # type: ignore[assignment]
    onnx_sha256 = fields.Sha256()
    bytes = fields.Integer(max_value=fields.MAX_NUMBER)
    sidecar = ContractTable(allow_null=True)
    contract = ContractAnswer(allow_null=True)
    verified_at = fields.Moment(allow_null=True)
    lineage_ended_at = fields.Moment(allow_null=True)
    lineage_ended_reason = serializers.SerializerMethodField()
    sims = SimInRound(many=True, source="in_locked_rounds")
    created_at = fields.Moment()

    def get_lineage_ended_reason(self, checkpoint: Checkpoint) -> str | None:
        return checkpoint.lineage_ended_reason or None


class PutAnswer(serializers.Serializer[Any]):
    """Where to PUT the bytes, with exactly these headers."""

    url = fields.Text(max_length=4000)
    headers = fields.MapOf(fields.Text())
    expires_at = fields.Moment()


class UploadAnswer(serializers.Serializer[Any]):
    checkpoint = CheckpointAnswer()
    upload = PutAnswer(source="put")


class Checkpoints(HubView):
    @operation("listCheckpoints", who="SR", query=CheckpointQuery, answer=CheckpointAnswer, listed=True)
    def get(self, request: Request, campaign_id: str) -> Response:
        """A campaign's checkpoints, by run and step, and by whether their lineage goes on."""
        campaign = self.find(Campaign.objects.visible_to(self.by), campaign_id)
        wanted = self.query()
        found = Checkpoint.objects.shown().filter(run__campaign=campaign)
        if lineage := wanted.pop("lineage", None):
            found = found.filter(lineage_ended_at__isnull=lineage == "open")
        return self.page(found.filter(**wanted))

    @operation(
        "createCheckpoint",
        who="SW",
        body=CreateCheckpoint,
        answer=UploadAnswer,
        status=201,
        problems=[
            checkpoints.StepTaken,
            checkpoints.CheckpointTooLarge,
            OverQuota,
            LineageEnded,
            StorageUnavailable,
        ],
    )
    def post(self, request: Request, campaign_id: str) -> Response:
        """Declare a checkpoint, and get the URL that takes its bytes."""
        campaign = self.find(Campaign.objects.visible_to(self.by).select_related("owner"), campaign_id)
        permissions.may_plan(self.by, campaign.owner)
        declared = checkpoints.Declared(**self.body())
        upload = checkpoints.create_checkpoint(campaign=campaign, declared=declared, by=self.by, at=self.at)
        return self.answer(upload)


class OneCheckpoint(HubView):
    @operation("getCheckpoint", who="SR", answer=CheckpointAnswer)
    def get(self, request: Request, checkpoint_id: str) -> Response:
        """One checkpoint, with its contract and its verdicts in simulation."""
        return self.answer(self.find(Checkpoint.objects.visible_to(self.by).shown(), checkpoint_id))


class CheckpointComplete(HubView):
    @operation(
        "completeCheckpoint",
        who="SW",
        answer=CheckpointAnswer,
        problems=[checkpoints.CheckpointRefused, NotReserved, ObjectMissing, StorageUnavailable],
    )
    def post(self, request: Request, checkpoint_id: str) -> Response:
        """Have an upload hashed and its contract read. A second time changes nothing."""
        seen = Checkpoint.objects.visible_to(self.by)
        checkpoint = self.find(
            seen.select_related("run__campaign__owner", "run__campaign__robot", "object"), checkpoint_id
        )
        permissions.may_plan(self.by, checkpoint.campaign.owner)
        checkpoints.complete_checkpoint(checkpoint=checkpoint, by=self.by, at=self.at)
        return self.answer(Checkpoint.objects.shown().get(pk=checkpoint.pk))
