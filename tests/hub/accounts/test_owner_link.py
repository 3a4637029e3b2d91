from datetime import timedelta

import pytest

from hub.accounts import services
from hub.accounts.actors import SYSTEM
from hub.accounts.models import OwnerLink, Role, User
from hub.accounts.services import LinkSpent
from hub.audit.models import Event
from hub.core.problems import Unprocessable
from tests.factories import NOON

GOOD = "a long and plain phrase"


def use(secret, *, at=NOON, password=GOOD, email="new@lab.test"):
    return services.use_owner_link(secret=secret, password=password, email=email, name="new", at=at)


def test_the_first_owner_comes_in_through_a_link_once(db):
    secret = services.make_owner_link(by=SYSTEM, at=NOON)

    user = use(secret)

    assert user.check_password(GOOD)
    assert user.account.memberships.get().role == Role.OWNER
    with pytest.raises(LinkSpent):
        use(secret, email="second@lab.test")
    assert User.objects.count() == 1


def test_a_link_made_for_a_person_sets_their_password_and_makes_nobody(ana):
    use(services.make_owner_link(user=ana, by=SYSTEM, at=NOON))

    ana.refresh_from_db()
    assert ana.check_password(GOOD)
    assert User.objects.count() == 1


def test_a_link_lasts_a_day(db, settings):
    secret = services.make_owner_link(by=SYSTEM, at=NOON)

    services.find_owner_link(secret, at=NOON + settings.OWNER_LINK_FOR - timedelta(seconds=1))
    with pytest.raises(LinkSpent):
        services.find_owner_link(secret, at=NOON + settings.OWNER_LINK_FOR)


def test_an_unknown_link_is_spent(db):
    with pytest.raises(LinkSpent):
        use("guess")


@pytest.mark.parametrize("password", ["short", "password123", "new@lab.test"])
def test_a_password_that_is_easy_to_guess_leaves_the_link_open(db, password):
    secret = services.make_owner_link(by=SYSTEM, at=NOON)

    with pytest.raises(Unprocessable) as refused:
        use(secret, password=password)

    assert list(refused.value.members["errors"]) == ["password"]
    assert use(secret).check_password(GOOD)


def test_every_link_for_a_first_owner_ends_when_the_first_owner_is_there(db):
    printed_twice = [services.make_owner_link(by=SYSTEM, at=NOON) for _ in range(2)]
    use(printed_twice[0])

    with pytest.raises(LinkSpent):
        use(printed_twice[1], email="second@lab.test")

    assert User.objects.count() == 1


def test_the_secret_is_kept_nowhere(db):
    secret = services.make_owner_link(by=SYSTEM, at=NOON)

    assert secret not in str([*OwnerLink.objects.values(), *Event.objects.values()])


def test_without_its_audit_event_no_password_is_set(db, monkeypatch):
    secret = services.make_owner_link(by=SYSTEM, at=NOON)
    monkeypatch.setattr(services.audit, "record", lambda *a, **k: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        use(secret)

    assert not User.objects.exists()
    assert OwnerLink.objects.get().used_at is None
