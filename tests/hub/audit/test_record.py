import pytest

from hub.accounts.actors import SYSTEM
from hub.audit import services as audit
from hub.audit.models import Event
from tests import factories
from tests.factories import NOON


def record(action="account.created", *, by=SYSTEM, target="acc_1"):
    return audit.record(
        action, by=by, account_id="acc_1", target=target, at=NOON, sentence="It was done.", n=1
    )


@pytest.mark.django_db(transaction=True)
def test_an_event_is_only_written_inside_a_transaction():
    with pytest.raises(RuntimeError, match="outside a transaction"):
        record()


def test_an_action_that_no_app_lists_is_not_written(db):
    with pytest.raises(RuntimeError, match="no app's list"):
        record("account.mislaid")


def test_an_event_keeps_who_what_when_and_a_sentence(ana):
    event = record(by=factories.actor(ana), target=ana.account)

    kept = Event.objects.get(pk=event.pk)
    assert (kept.actor_kind, kept.actor, kept.target) == ("person", "ana@lab.test", ana.account.pk)
    assert (kept.sentence, kept.data, kept.at) == ("It was done.", {"n": 1}, NOON)


def test_an_event_outlives_what_it_is_about(lab, ana):
    event = record(target=lab)

    lab.delete()

    assert Event.objects.get(pk=event.pk).target == event.target


def test_an_act_by_name_alone_is_the_systems(db):
    assert record(by="the sweeper").actor_kind == "system"
