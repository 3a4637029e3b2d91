"""Two at the same moment, on PostgreSQL: SQLite writes one at a time and would prove nothing."""

import hashlib
from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from hub.accounts.actors import SYSTEM
from hub.accounts.models import User
from hub.audit.models import Event
from hub.campaigns.models import Campaign, Checkpoint, Round
from hub.campaigns.services import checkpoints, lineage, rounds
from hub.campaigns.services.checkpoints import Declared
from hub.core.lifecycle import WrongState
from hub.core.problems import Problem
from hub.storage import s3
from hub.storage.models import StorageUsage
from tests.factories import NOON
from tests.hub.campaigns import factories as made
from tests.races import at_once

pytestmark = pytest.mark.django_db(transaction=True)


def declare(campaign: Campaign, *, parent: Checkpoint | None = None, body: bytes = b"x") -> Callable[[], Any]:
    declared = Declared(
        run="walk-9",
        step=1,
        bytes=len(body),
        onnx_sha256=hashlib.sha256(body).hexdigest(),
        sidecar=made.SIDECAR,
        parent=parent and parent.pk,
    )
    return lambda: (
        checkpoints.create_checkpoint(
            campaign=campaign, declared=declared, by=SYSTEM, at=timezone.now()
        ).checkpoint
    )


def decide(of: Round, session_id: str) -> Callable[[], Any]:
    return lambda: rounds.mark_decided(round=of, session_id=session_id, by=SYSTEM, at=NOON)


def test_of_many_shortlists_of_a_round_exactly_one_counts(campaign: Campaign) -> None:
    locked = made.round_of(campaign, made.result(made.checkpoint(campaign)))

    came = at_once(*(decide(locked, f"ses_{number}") for number in range(8)))

    [won] = [each for each in came if isinstance(each, Round)]
    refused = [each for each in came if isinstance(each, rounds.AlreadyDecided)]
    assert len(refused) == 7
    assert {each.members["session"] for each in refused} == {won.session_id}
    assert Round.objects.get(pk=locked.pk).session_id == won.session_id
    assert Event.objects.filter(action="round.decided").count() == 1


def test_rounds_drafted_together_have_numbers_of_their_own(campaign: Campaign) -> None:
    def draft() -> Round:
        return rounds.create_round(campaign=campaign, content={}, by=SYSTEM, at=NOON)

    came = at_once(*[draft] * 6)

    assert sorted(each.number for each in came) == [1, 2, 3, 4, 5, 6]


def test_what_is_locked_is_what_was_saved_before_or_the_save_is_refused(campaign: Campaign) -> None:
    drafted = made.round_of(campaign, made.result(made.checkpoint(campaign)), is_locked=False)
    changes = {"gates": [{**made.GATES[0], "threshold": 9.0}, made.GATES[1]]}

    changed, locked = at_once(
        lambda: rounds.update_round(round=drafted, changes=changes, by=SYSTEM, at=NOON),
        lambda: rounds.lock_round(round=drafted, by=SYSTEM, at=NOON),
    )

    assert isinstance(locked, Round)
    kept = Round.objects.get(pk=drafted.pk).gates
    assert kept == locked.gates
    assert kept == (made.GATES if isinstance(changed, WrongState) else changes["gates"])


@pytest.mark.usefixtures("object_store")
def test_one_step_declared_by_many_is_one_checkpoint_with_one_upload(campaign: Campaign, ana: User) -> None:
    came = at_once(*[declare(campaign, body=b"12345")] * 6)

    assert len({each.pk for each in came}) == 1
    assert StorageUsage.objects.get(account=ana.account).bytes == 5


@pytest.mark.usefixtures("object_store")
def test_a_child_declared_while_its_lineage_ends_is_refused_or_ends_with_it(campaign: Campaign) -> None:
    parent = made.checkpoint(campaign)

    child, _ = at_once(
        declare(campaign, parent=parent),
        lambda: lineage.end_lineage(checkpoint=parent, reason="It fell.", by=SYSTEM, at=NOON),
    )

    if isinstance(child, Checkpoint):
        child.refresh_from_db()
        assert child.lineage_ended_at is not None
    else:
        assert isinstance(child, lineage.LineageEnded)


def test_a_round_drafted_while_a_lineage_ends_is_never_locked(campaign: Campaign) -> None:
    parent, other = made.checkpoint(campaign, step=400), made.checkpoint(campaign, step=700)
    drafted = made.round_of(campaign, made.result(other), resumes_from=parent, is_locked=False)

    locked, _ = at_once(
        lambda: rounds.lock_round(round=drafted, by=SYSTEM, at=NOON),
        lambda: lineage.end_lineage(checkpoint=parent, reason="It fell.", by=SYSTEM, at=timezone.now()),
    )

    ended_at = Checkpoint.objects.get(pk=parent.pk).lineage_ended_at
    assert ended_at is not None
    assert isinstance(locked, Round | lineage.LineageEnded)


@pytest.mark.usefixtures("object_store")
def test_an_upload_completed_by_many_is_verified_once_from_one_copy(campaign: Campaign, ana: User) -> None:
    body = made.onnx()
    checkpoint = declare(campaign, body=body)()
    s3.put(checkpoint.object.key, body)

    def complete() -> Checkpoint:
        found = Checkpoint.objects.get(pk=checkpoint.pk)
        return checkpoints.complete_checkpoint(checkpoint=found, by=SYSTEM, at=timezone.now())

    came = at_once(*[complete] * 4)

    assert not [each for each in came if isinstance(each, Problem)]
    kept = Checkpoint.objects.get(pk=checkpoint.pk).object
    assert kept is not None
    assert s3.digest(kept.key).sha256 == checkpoint.onnx_sha256
    assert Event.objects.filter(action="checkpoint.verified").count() == 1
    assert StorageUsage.objects.get(account=ana.account).bytes == len(body)
