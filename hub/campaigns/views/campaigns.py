from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hub.accounts import permissions
from hub.accounts.api import HubView, operation
from hub.campaigns.models import Campaign, Robot
from hub.campaigns.owners import account_to_plan_for
from hub.campaigns.services import campaigns, lineage
from hub.core import fields
from hub.core.patch import Patch


class CampaignQuery(fields.Body):
    account = fields.Text(max_length=32, source="owner", required=False)
    robot = fields.Text(max_length=32, required=False)


class CreateCampaign(fields.Body):
    account = fields.Text(max_length=32, required=False)
    robot = fields.Text(max_length=32)
    name = fields.Text(max_length=200)
    fail_ends_lineage = fields.Flag(default=True)


class UpdateCampaign(Patch):
    """
    Name and rule. What is on the robot changes by a verdict alone, and a lineage that has ended stays ended.
    """

    name = fields.Text(max_length=200)
    fail_ends_lineage = fields.Flag()


class OnRobot(serializers.Serializer[Campaign]):
    """The policy on the robot, and the trial whose verdict put it there."""

    checkpoint = fields.Text(source="policy_on_robot_id")
    run = fields.Text(source="policy_on_robot.run.name")
    step = fields.Integer(source="policy_on_robot.step", max_value=fields.MAX_NUMBER)
    trial = fields.Text(source="policy_trial_id")
    at = fields.Moment(source="policy_put_at")


class CampaignAnswer(serializers.Serializer[Campaign]):
    id = fields.Text()
    account = fields.Text(source="owner_id")
    robot = fields.Text(source="robot_id")
    robot_slug = fields.Text(source="robot.slug")
    name = fields.Text()
    fail_ends_lineage = fields.Flag()
    policy_on_robot = serializers.SerializerMethodField()
    created_at = fields.Moment()

    @extend_schema_field(OnRobot(allow_null=True))
    def get_policy_on_robot(self, campaign: Campaign) -> Any:
        return OnRobot(campaign).data if campaign.policy_on_robot_id else None


class LineAnswer(serializers.Serializer[Any]):
    checkpoint = fields.Text(source="pk")
    run = fields.Text(source="run.name")
    step = fields.Integer(max_value=fields.MAX_NUMBER)
    lineage_ended_at = fields.Moment(allow_null=True)


class CampaignDetailAnswer(CampaignAnswer):
    """A campaign, and the line of checkpoints that led to the policy on the robot, nearest first."""

    lineage = serializers.SerializerMethodField()

    @extend_schema_field(LineAnswer(many=True))
    def get_lineage(self, campaign: Campaign) -> Any:
        return LineAnswer(lineage.line_of(campaign.policy_on_robot), many=True).data


class Campaigns(HubView):
    @operation("listCampaigns", who="SR", query=CampaignQuery, answer=CampaignAnswer, listed=True)
    def get(self, request: Request) -> Response:
        """The campaigns of my accounts."""
        return self.page(Campaign.objects.visible_to(self.by).with_policy().filter(**self.query()))

    @operation("createCampaign", who="SW", body=CreateCampaign, answer=CampaignDetailAnswer, status=201)
    def post(self, request: Request) -> Response:
        """Start a campaign on a robot."""
        body = self.body()
        owner = account_to_plan_for(self.by, body.get("account"))
        campaign = campaigns.create_campaign(
            owner=owner,
            robot=self.find(Robot.objects.visible_to(self.by), body["robot"]),
            name=body["name"],
            fail_ends_lineage=body["fail_ends_lineage"],
            by=self.by,
            at=self.at,
        )
        return self.answer(campaign)


class OneCampaign(HubView):
    @operation("getCampaign", who="SR", answer=CampaignDetailAnswer)
    def get(self, request: Request, campaign_id: str) -> Response:
        """One campaign, with the policy on the robot and the line that led to it."""
        return self.answer(self.find(Campaign.objects.visible_to(self.by).with_policy(), campaign_id))

    @operation("updateCampaign", who="S", body=UpdateCampaign, answer=CampaignDetailAnswer)
    def patch(self, request: Request, campaign_id: str) -> Response:
        """Change a campaign's name, or whether a FAIL in simulation ends a lineage."""
        campaign = self.find(Campaign.objects.visible_to(self.by).select_related("owner"), campaign_id)
        permissions.may_decide(self.by, campaign.owner)
        changed = campaigns.update_campaign(campaign=campaign, changes=self.body(), by=self.by, at=self.at)
        return self.answer(changed)
