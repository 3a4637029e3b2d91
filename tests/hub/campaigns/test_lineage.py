import pytest

from hub.accounts.actors import SYSTEM
from hub.accounts.models import User
from hub.audit.models import Event
from hub.campaigns.models import Campaign, Checkpoint
from hub.campaigns.services import checkpoints, lineage
from tests.factories import NOON, actor
from tests.hub.campaigns import factories as made


def ended(*checkpoints: Checkpoint) -> list[bool]:
    return [Checkpoint.objects.get(pk=each.pk).lineage_ended_at is not None for each in checkpoints]


def test_a_lineage_ends_with_all_that_comes_from_it_and_nothing_else(campaign: Campaign) -> None:
    root = made.checkpoint(campaign, step=100)
    stopped = made.checkpoint(campaign, step=200, parent=root)
    child = made.checkpoint(campaign, step=300, parent=stopped)
    grandchild = made.checkpoint(campaign, step=400, parent=child)
    sibling = made.checkpoint(campaign, step=500, parent=root)

    gone = lineage.end_lineage(checkpoint=stopped, reason="It fell.", by=SYSTEM, at=NOON)

    assert set(gone) == {stopped, child, grandchild}
    assert ended(root, stopped, child, grandchild, sibling) == [False, True, True, True, False]


def test_what_comes_from_an_ended_checkpoint_says_so(campaign: Campaign) -> None:
    stopped = made.checkpoint(campaign, step=200)
    child = made.checkpoint(campaign, step=300, parent=stopped)

    lineage.end_lineage(checkpoint=stopped, reason="It fell.", by=SYSTEM, at=NOON)

    stopped.refresh_from_db()
    child.refresh_from_db()
    assert stopped.lineage_ended_reason == "It fell."
    assert child.lineage_ended_reason == "It comes from walk-7 step 200: It fell."


def test_what_had_ended_keeps_its_moment_and_reason(campaign: Campaign) -> None:
    parent = made.checkpoint(campaign, step=200)
    child = made.checkpoint(campaign, step=300, parent=parent)
    lineage.end_lineage(checkpoint=child, reason="It limped.", by=SYSTEM, at=NOON)

    gone = lineage.end_lineage(checkpoint=parent, reason="It fell.", by=SYSTEM, at=NOON)

    child.refresh_from_db()
    assert gone == [parent]
    assert child.lineage_ended_reason == "It limped."


def test_ending_what_has_ended_leaves_no_event(campaign: Campaign) -> None:
    checkpoint = made.checkpoint(campaign)
    lineage.end_lineage(checkpoint=checkpoint, reason="It fell.", by=SYSTEM, at=NOON)

    assert lineage.end_lineage(checkpoint=checkpoint, reason="again", by=SYSTEM, at=NOON) == []
    assert Event.objects.filter(action="lineage.ended").count() == 1


def test_the_record_says_how_many_end_with_it(campaign: Campaign, ana: User) -> None:
    parent = made.checkpoint(campaign, step=200)
    made.checkpoint(campaign, step=300, parent=parent)

    lineage.end_lineage(checkpoint=parent, reason="It fell.", by=actor(ana), at=NOON)

    event = Event.objects.get(action="lineage.ended")
    assert event.sentence == (
        "ana@lab.test ended the lineage of walk-7 step 200 and of 1 that comes from it: It fell."
    )


def test_nothing_is_declared_as_a_child_of_an_ended_lineage(campaign: Campaign) -> None:
    parent = made.checkpoint(campaign)
    lineage.end_lineage(checkpoint=parent, reason="It fell.", by=SYSTEM, at=NOON)
    declared = checkpoints.Declared(run="walk-8", step=1, bytes=10, onnx_sha256="0" * 64, parent=parent.pk)

    with pytest.raises(lineage.LineageEnded):
        checkpoints.create_checkpoint(campaign=campaign, declared=declared, by=SYSTEM, at=NOON)
