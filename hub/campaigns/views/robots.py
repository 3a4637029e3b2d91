from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hub.accounts.api import HubView, operation
from hub.campaigns.models import Robot
from hub.campaigns.owners import account_to_plan_for
from hub.campaigns.schemas import RobotTable
from hub.campaigns.services import robots
from hub.core import fields


class RobotQuery(fields.Body):
    account = fields.Text(max_length=32, source="owner", required=False)
    slug = fields.Text(max_length=80, required=False)


class CreateRobot(fields.Body):
    """The robot file's document, and whose robot it is."""

    account = fields.Text(max_length=32, required=False)
    robot = RobotTable()


class PairAnswer(serializers.Serializer[Any]):
    name = fields.Text()
    left = fields.Text()
    right = fields.Text()
    mirror = fields.Integer()


class RobotAnswer(serializers.Serializer[Robot]):
    """A robot, with the left-right pairs that its joints' names and its file give."""

    id = fields.Text()
    account = fields.Text(source="owner_id")
    slug = fields.Text()
    name = fields.Text()
    joints = fields.ListOf(fields.Text(), max_length=256, source="described.joints")
    pairs = PairAnswer(many=True, source="described.pairs")
    robot = RobotTable(source="document.robot")
    created_at = fields.Moment()


class Robots(HubView):
    @operation("listRobots", who="SR", query=RobotQuery, answer=RobotAnswer, listed=True)
    def get(self, request: Request) -> Response:
        """The robots of my accounts."""
        return self.page(Robot.objects.visible_to(self.by).filter(**self.query()))

    @operation(
        "createRobot",
        who="SW",
        body=CreateRobot,
        answer=RobotAnswer,
        status=201,
        problems=[robots.SlugTaken],
    )
    def post(self, request: Request) -> Response:
        """Add a robot from its robot file."""
        body = self.body()
        owner = account_to_plan_for(self.by, body.get("account"))
        document = {"robot": body["robot"]}
        return self.answer(robots.create_robot(owner=owner, document=document, by=self.by, at=self.at))


class OneRobot(HubView):
    @operation("getRobot", who="SR", answer=RobotAnswer)
    def get(self, request: Request, robot_id: str) -> Response:
        """One robot."""
        return self.answer(self.find(Robot.objects.visible_to(self.by), robot_id))
