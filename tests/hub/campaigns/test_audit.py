"""Every act is written with its event or not at all."""

import hashlib
from collections.abc import Callable
from typing import Any

import pytest
from django.apps import apps
from django.utils import timezone

from hub.accounts.actors import SYSTEM
from hub.accounts.models import User
from hub.audit import services as audit
from hub.audit.models import Event
from hub.campaigns.models import Campaign, Checkpoint
from hub.campaigns.services import agents, campaigns, checkpoints, lineage, robots, rounds
from hub.storage import s3
from hub.storage.models import StorageUsage, StoredObject
from tests.factories import NOON
from tests.hub.campaigns import factories as made

Act = Callable[[], Any]
WHO_AND_WHEN = {"by": SYSTEM, "at": NOON}


def everything() -> list[list[dict[str, Any]]]:
    models = [*apps.get_app_config("campaigns").get_models(), StoredObject, StorageUsage]
    return [list(model.objects.order_by("pk").values()) for model in models]


def undecided(campaign: Campaign) -> Checkpoint:
    """A checkpoint that was declared and whose bytes are there."""
    body = made.onnx()
    digest = hashlib.sha256(body).hexdigest()
    declared = checkpoints.Declared(
        run="walk-9", step=1, bytes=len(body), onnx_sha256=digest, sidecar=made.SIDECAR
    )
    upload = checkpoints.create_checkpoint(campaign=campaign, declared=declared, by=SYSTEM, at=timezone.now())
    assert upload.checkpoint.object is not None
    s3.put(upload.checkpoint.object.key, body)
    return upload.checkpoint


def create_robot(campaign: Campaign) -> Act:
    document = {"robot": {**made.ROBOT_FILE["robot"], "slug": "other"}}
    return lambda: robots.create_robot(owner=campaign.owner, document=document, **WHO_AND_WHEN)


def create_campaign(campaign: Campaign) -> Act:
    return lambda: campaigns.create_campaign(
        owner=campaign.owner, robot=campaign.robot, name="other", **WHO_AND_WHEN
    )


def update_campaign(campaign: Campaign) -> Act:
    return lambda: campaigns.update_campaign(campaign=campaign, changes={"name": "other"}, **WHO_AND_WHEN)


def put_on_robot(campaign: Campaign) -> Act:
    checkpoint = made.checkpoint(campaign)
    return lambda: campaigns.put_on_robot(
        campaign=campaign, checkpoint=checkpoint, trial_id="trl_1", **WHO_AND_WHEN
    )


def create_checkpoint(campaign: Campaign) -> Act:
    declared = checkpoints.Declared(run="walk-9", step=1, bytes=1, onnx_sha256="0" * 64)
    return lambda: checkpoints.create_checkpoint(campaign=campaign, declared=declared, **WHO_AND_WHEN)


def complete_checkpoint(campaign: Campaign) -> Act:
    checkpoint = undecided(campaign)
    return lambda: checkpoints.complete_checkpoint(checkpoint=checkpoint, **WHO_AND_WHEN)


def refuse_checkpoint(campaign: Campaign) -> Act:
    checkpoint = undecided(campaign)
    checkpoint.sidecar = None
    return lambda: checkpoints.complete_checkpoint(checkpoint=checkpoint, **WHO_AND_WHEN)


def end_lineage(campaign: Campaign) -> Act:
    checkpoint = made.checkpoint(campaign)
    return lambda: lineage.end_lineage(checkpoint=checkpoint, reason="It fell.", **WHO_AND_WHEN)


def create_round(campaign: Campaign) -> Act:
    content = {"gates": made.GATES, "results": [made.result(made.checkpoint(campaign))]}
    return lambda: rounds.create_round(campaign=campaign, content=content, **WHO_AND_WHEN)


def update_round(campaign: Campaign) -> Act:
    drafted = made.round_of(campaign, made.result(made.checkpoint(campaign)), is_locked=False)
    return lambda: rounds.update_round(round=drafted, changes={"results": []}, **WHO_AND_WHEN)


def lock_round(campaign: Campaign) -> Act:
    drafted = made.round_of(campaign, made.result(made.checkpoint(campaign)), is_locked=False)
    return lambda: rounds.lock_round(round=drafted, **WHO_AND_WHEN)


def mark_decided(campaign: Campaign) -> Act:
    locked = made.round_of(campaign, made.result(made.checkpoint(campaign)))
    return lambda: rounds.mark_decided(round=locked, session_id="ses_1", **WHO_AND_WHEN)


def create_agent_session(campaign: Campaign) -> Act:
    return lambda: agents.create_agent_session(campaign=campaign, name="drafter", **WHO_AND_WHEN)


def wake_agents(campaign: Campaign) -> Act:
    create_agent_session(campaign)()
    return lambda: agents.wake_agents(campaign=campaign, payload={}, **WHO_AND_WHEN)


def ack_wake(campaign: Campaign) -> Act:
    [wake] = wake_agents(campaign)()
    return lambda: agents.ack_wake(wake=wake, **WHO_AND_WHEN)


ACTS = {
    "robot.created": create_robot,
    "campaign.created": create_campaign,
    "campaign.changed": update_campaign,
    "campaign.policy": put_on_robot,
    "checkpoint.declared": create_checkpoint,
    "checkpoint.verified": complete_checkpoint,
    "checkpoint.refused": refuse_checkpoint,
    "lineage.ended": end_lineage,
    "round.created": create_round,
    "round.changed": update_round,
    "round.locked": lock_round,
    "round.decided": mark_decided,
    "agent.attached": create_agent_session,
    "agent.woken": wake_agents,
    "wake.acked": ack_wake,
}


@pytest.mark.usefixtures("object_store")
@pytest.mark.parametrize("action", ACTS)
def test_without_its_event_nothing_of_an_act_lands(
    action: str, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    act = ACTS[action](campaign)
    before = everything()
    monkeypatch.setattr(audit, "record", lambda *args, **said: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        act()

    assert everything() == before


@pytest.mark.usefixtures("object_store")
@pytest.mark.parametrize("action", ACTS)
def test_an_act_leaves_one_sentence_for_its_account(action: str, campaign: Campaign, ana: User) -> None:
    act = ACTS[action](campaign)
    before = set(Event.objects.values_list("pk", flat=True))

    try:
        act()
    except checkpoints.CheckpointRefused:
        assert action == "checkpoint.refused"

    [event] = Event.objects.exclude(pk__in=before)
    assert event.action == action
    assert event.account_id == ana.account.pk
    assert event.sentence.startswith("the hub ")
    assert event.sentence.endswith(".")


def test_every_action_of_this_app_is_tried_here() -> None:
    from hub.audit import actions

    kinds = ("robot.", "campaign.", "checkpoint.", "lineage.", "round.", "agent.", "wake.")
    assert {name for name in actions.known() if name.startswith(kinds)} == set(ACTS)
