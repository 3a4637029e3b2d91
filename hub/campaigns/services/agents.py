"""Agents attached to a campaign, and what wakes them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from hub.accounts.actors import Actor
from hub.audit import services as audit
from hub.campaigns.models import AgentSession, Campaign, Wake


@transaction.atomic
def create_agent_session(*, campaign: Campaign, name: str, by: Actor, at: datetime) -> AgentSession:
    """Attach an agent to a campaign: from now on an iterate verdict there wakes it."""
    session = AgentSession.objects.create(campaign=campaign, name=name, created_at=at)
    audit.record(
        "agent.attached",
        by=by,
        account_id=campaign.owner_id,
        target=session,
        at=at,
        sentence=f"{by.label} attached the agent {name} to {campaign.name}.",
    )
    return session


@transaction.atomic
def wake_agents(*, campaign: Campaign, payload: Mapping[str, Any], by: Actor, at: datetime) -> list[Wake]:
    """Wake every agent of a campaign with what happened. Where none is attached, nothing is written."""
    sessions = list(campaign.agent_sessions.order_by("pk"))
    if not sessions:
        return []
    wakes = [Wake(agent_session=session, payload=dict(payload), created_at=at) for session in sessions]
    Wake.objects.bulk_create(wakes)
    names = ", ".join(session.name for session in sessions)
    audit.record(
        "agent.woken",
        by=by,
        account_id=campaign.owner_id,
        target=campaign,
        at=at,
        sentence=f"{by.label} woke {names} on {campaign.name}.",
        wakes=[wake.pk for wake in wakes],
    )
    return wakes


@transaction.atomic
def ack_wake(*, wake: Wake, by: Actor, at: datetime) -> Wake:
    """Note that the agent has it. Saying so again changes nothing."""
    rows = Wake.objects.select_for_update(of=("self",)).select_related("agent_session__campaign")
    wake = rows.get(pk=wake.pk)
    if wake.acked_at is not None:
        return wake
    wake.acked_at = at
    wake.save(update_fields=["acked_at"])
    campaign = wake.agent_session.campaign
    audit.record(
        "wake.acked",
        by=by,
        account_id=campaign.owner_id,
        target=wake,
        at=at,
        sentence=f"{by.label} has what woke {wake.agent_session.name} on {campaign.name}.",
    )
    return wake
