from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hub.accounts import permissions
from hub.accounts.api import HubView, operation
from hub.campaigns.models import Campaign, Round, RoundResult
from hub.campaigns.schemas import Gates, Measured, Results
from hub.campaigns.services import rounds
from hub.campaigns.services.lineage import FailedInSim, LineageEnded
from hub.core import fields
from hub.core.lifecycle import WrongState
from hub.core.patch import Patch


class CreateRound(fields.Body):
    resumes_from = fields.Text(max_length=32, required=False, allow_null=True)
    gates = Gates(required=False)
    results = Results(required=False)


class UpdateRound(Patch):
    """Each part is given as a whole. A null `resumes_from` clears it; an empty list clears the others."""

    resumes_from = fields.Text(max_length=32, allow_null=True)
    gates = Gates()
    results = Results()


class SimAnswer(serializers.Serializer[Any]):
    """A checkpoint's verdict in simulation, from its round's locked gates."""

    verdict = fields.Choice(["PASS", "FAIL"])
    gates_passed = fields.Integer()
    gates = fields.Integer()
    seeds_upright = fields.Integer()
    seeds_run = fields.Integer()


class ResultAnswer(serializers.Serializer[RoundResult]):
    checkpoint = fields.Text(source="checkpoint_id")
    run = fields.Text(source="checkpoint.run.name")
    step = fields.Integer(source="checkpoint.step", max_value=fields.MAX_NUMBER)
    seeds_run = fields.Integer()
    seeds_upright = fields.Integer()
    measured = Measured(source="by_gate")
    sim = serializers.SerializerMethodField()

    @extend_schema_field(SimAnswer(allow_null=True))
    def get_sim(self, row: RoundResult) -> Any:
        """None while the gates may still change."""
        return None if row.round.state == Round.State.DRAFT else row.sim


class RoundAnswer(serializers.Serializer[Round]):
    id = fields.Text()
    campaign = fields.Text(source="campaign_id")
    number = fields.Integer()
    state = fields.Choice(Round.State.choices)
    resumes_from = fields.Text(source="resumes_from_id", allow_null=True)
    gates = Gates()
    results = ResultAnswer(many=True)
    locked_at = fields.Moment(allow_null=True)
    decided_at = fields.Moment(allow_null=True)
    decided_by = serializers.SerializerMethodField()
    session = serializers.SerializerMethodField()
    created_at = fields.Moment()

    def get_decided_by(self, round: Round) -> str | None:
        return round.decided_by or None

    def get_session(self, round: Round) -> str | None:
        return round.session_id or None


class Rounds(HubView):
    @operation("listRounds", who="SR", answer=RoundAnswer, listed=True)
    def get(self, request: Request, campaign_id: str) -> Response:
        """A campaign's rounds, with what simulation said."""
        campaign = self.find(Campaign.objects.visible_to(self.by), campaign_id)
        self.query()
        return self.page(Round.objects.with_results().filter(campaign=campaign))

    @operation(
        "createRound",
        who="SW",
        body=CreateRound,
        answer=RoundAnswer,
        status=201,
        problems=[LineageEnded, FailedInSim],
    )
    def post(self, request: Request, campaign_id: str) -> Response:
        """Draft the next round of a campaign."""
        campaign = self.find(Campaign.objects.visible_to(self.by).select_related("owner"), campaign_id)
        permissions.may_plan(self.by, campaign.owner)
        made = rounds.create_round(campaign=campaign, content=self.body(), by=self.by, at=self.at)
        return self.answer(Round.objects.with_results().get(pk=made.pk))


class OneRound(HubView):
    @operation("getRound", who="SR", answer=RoundAnswer)
    def get(self, request: Request, round_id: str) -> Response:
        """One round: its gates, and what simulation measured of each checkpoint."""
        return self.answer(self.find(Round.objects.visible_to(self.by).with_results(), round_id))

    @operation(
        "updateRound",
        who="SW",
        body=UpdateRound,
        answer=RoundAnswer,
        problems=[WrongState, LineageEnded, FailedInSim],
    )
    def patch(self, request: Request, round_id: str) -> Response:
        """Change a draft's gates, results or parent."""
        round = self.find(Round.objects.visible_to(self.by).select_related("campaign__owner"), round_id)
        permissions.may_plan(self.by, round.campaign.owner)
        rounds.update_round(round=round, changes=self.body(), by=self.by, at=self.at)
        return self.answer(Round.objects.with_results().get(pk=round.pk))


class RoundLock(HubView):
    @operation(
        "lockRound",
        who="S",
        answer=RoundAnswer,
        problems=[WrongState, rounds.NotReady, LineageEnded, FailedInSim],
    )
    def post(self, request: Request, round_id: str) -> Response:
        """Fix gates and results, before anyone chooses."""
        round = self.find(Round.objects.visible_to(self.by).select_related("campaign__owner"), round_id)
        permissions.may_decide(self.by, round.campaign.owner)
        rounds.lock_round(round=round, by=self.by, at=self.at)
        return self.answer(Round.objects.with_results().get(pk=round.pk))
