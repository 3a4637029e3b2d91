from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hub.accounts import permissions
from hub.accounts.api import HubView, operation
from hub.campaigns.models import AgentSession, Campaign, Wake
from hub.campaigns.services import agents
from hub.core import fields


class AgentSessionQuery(fields.Body):
    campaign = fields.Text(max_length=32, required=False)


class CreateAgentSession(fields.Body):
    campaign = fields.Text(max_length=32)
    name = fields.Text(max_length=120)


class AgentSessionAnswer(serializers.Serializer[AgentSession]):
    id = fields.Text()
    campaign = fields.Text(source="campaign_id")
    name = fields.Text()
    created_at = fields.Moment()


class WakeQuery(fields.Body):
    state = fields.Choice(["waiting", "acked"], required=False)


class WakeAnswer(serializers.Serializer[Any]):
    """What happened, and when the agent said that it has it."""

    id = fields.Text()
    agent_session = fields.Text(source="agent_session_id")
    payload = fields.Document()
    created_at = fields.Moment()
    acked_at = fields.Moment(allow_null=True)


class AgentSessions(HubView):
    @operation("listAgentSessions", who="SR", query=AgentSessionQuery, answer=AgentSessionAnswer, listed=True)
    def get(self, request: Request) -> Response:
        """The agents attached to my accounts' campaigns."""
        return self.page(AgentSession.objects.visible_to(self.by).filter(**self.query()))

    @operation("createAgentSession", who="SW", body=CreateAgentSession, answer=AgentSessionAnswer, status=201)
    def post(self, request: Request) -> Response:
        """Attach an agent to a campaign: an iterate verdict there wakes it."""
        body = self.body()
        seen = Campaign.objects.visible_to(self.by).select_related("owner")
        campaign = self.find(seen, body["campaign"])
        permissions.may_plan(self.by, campaign.owner)
        session = agents.create_agent_session(campaign=campaign, name=body["name"], by=self.by, at=self.at)
        return self.answer(session)


class Wakes(HubView):
    @operation("listWakes", who="W", query=WakeQuery, answer=WakeAnswer, listed=True)
    def get(self, request: Request, agent_session_id: str) -> Response:
        """What woke an agent; `state=waiting` leaves out what it has."""
        session = self.find(AgentSession.objects.visible_to(self.by), agent_session_id)
        wakes = Wake.objects.filter(agent_session=session)
        state = self.query().get("state")
        return self.page(wakes if state is None else wakes.filter(acked_at__isnull=state == "waiting"))


class WakeAck(HubView):
    @operation("ackWake", who="W", answer=WakeAnswer)
    def post(self, request: Request, wake_id: str) -> Response:
        """Say that the agent has it. A second time changes nothing."""
        wake = self.find(Wake.objects.visible_to(self.by), wake_id)
        return self.answer(agents.ack_wake(wake=wake, by=self.by, at=self.at))
