from datetime import timedelta
from functools import partial

import pytest

from hub.jobs.models import Job
from hub.storage import services
from hub.storage.models import StorageUsage, StoredObject
from hub.storage.services import NotReserved, OverQuota, Wanted
from tests import factories
from tests.factories import NOON
from tests.races import at_once

SHA = "0" * 64
LATER = NOON + timedelta(days=2)
State = StoredObject.State


@pytest.fixture(autouse=True)
def room_for_100(settings):
    settings.STORAGE_QUOTA_BYTES = 100


def reserve(owner, *sizes, at=NOON, key="incoming"):
    wanted = [Wanted(key=f"{key}/{n}", bytes=size, sha256=SHA) for n, size in enumerate(sizes)]
    return services.reserve(owner=owner, wanted=wanted, at=at)


def held(owner):
    return sum(StorageUsage.objects.filter(account=owner).values_list("bytes", flat=True))


def race(owner):
    """Twenty who want 60 bytes at once, and who of them got it."""

    answers = at_once(*[partial(reserve, owner, 60, key=f"attempt-{n}") for n in range(20)])
    assert all(isinstance(answer, list | OverQuota) for answer in answers)
    return [isinstance(answer, list) for answer in answers]


def test_what_fits_to_the_byte_is_reserved_and_one_byte_more_is_not(ana):
    reserve(ana.account, 60, 40)

    with pytest.raises(OverQuota) as refused:
        reserve(ana.account, 1, key="other")

    assert refused.value.status == 413
    assert refused.value.members == {"bytes": 1, "held_bytes": 100, "quota_bytes": 100}


def test_a_refused_reservation_leaves_nothing_behind(ana):
    with pytest.raises(OverQuota):
        reserve(ana.account, 60, 41)

    assert not StoredObject.objects.exists()
    assert held(ana.account) == 0


def test_each_account_has_room_of_its_own(ana, lab):
    reserve(ana.account, 100, key="a")
    reserve(lab, 100, key="b")

    assert held(ana.account) == held(lab) == 100


@pytest.mark.django_db(transaction=True)
def test_of_twenty_at_once_with_room_for_one_exactly_one_wins():
    owner = factories.person("ana").account
    StorageUsage.objects.create(account=owner, bytes=40)

    assert race(owner).count(True) == 1
    assert held(owner) == 100
    assert StoredObject.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_the_first_twenty_of_a_new_account_exactly_one_wins():
    owner = factories.person("ana").account

    assert race(owner).count(True) == 1
    assert held(owner) == 60


def test_a_stored_object_counts_and_its_reservation_never_ends(ana):
    (obj,) = reserve(ana.account, 60)

    services.complete(obj=obj, at=NOON)
    services.sweep_expired(at=LATER)

    obj.refresh_from_db()
    assert (obj.state, obj.stored_at, obj.reserved_until) == (State.STORED, NOON, None)
    assert held(ana.account) == 60


def test_the_hubs_copy_takes_the_place_of_what_was_sent(ana):
    (obj,) = reserve(ana.account, 60)
    urls_end = obj.reserved_until

    services.complete(obj=obj, at=NOON, key="trials/trl_1/log/01-hang.csv")

    obj.refresh_from_db()
    assert obj.key == "trials/trl_1/log/01-hang.csv"
    jobs = Job.objects.filter(kind="storage.delete").order_by("run_after")
    assert [(job.args["key"], job.run_after) for job in jobs] == [
        ("incoming/0", NOON),
        ("incoming/0", urls_end),
    ]


def test_an_upload_that_never_came_gives_its_room_back_after_its_time(ana, settings):
    reserve(ana.account, 60)
    ends = NOON + settings.PRESIGN_FOR + settings.RESERVATION_SLACK

    assert services.sweep_expired(at=ends) == 0
    assert services.sweep_expired(at=ends + timedelta(seconds=1)) == 1

    assert held(ana.account) == 0
    assert StoredObject.objects.get().state == State.RELEASED
    assert Job.objects.filter(kind="storage.delete").count() == 2


def test_a_reservation_that_ended_is_not_completed(ana):
    (obj,) = reserve(ana.account, 60)
    services.sweep_expired(at=LATER)

    with pytest.raises(NotReserved) as refused:
        services.complete(obj=obj, at=LATER)

    assert refused.value.members == {"state": "released"}


def test_room_is_given_back_once(ana):
    (obj, _) = reserve(ana.account, 60, 30)

    services.release(obj=obj, at=NOON)
    services.release(obj=obj, at=NOON)

    assert held(ana.account) == 30


def test_another_attempt_takes_the_place_of_the_open_ones_and_of_nothing_stored(ana):
    stored, _ = reserve(ana.account, 10, 20, key="trials/trl_1/log/incoming/a")
    services.complete(obj=stored, at=NOON)
    reserve(ana.account, 30, key="trials/trl_2/log/incoming/a")

    services.release_under(prefix="trials/trl_1/log/incoming/", at=NOON)

    assert held(ana.account) == 40


def test_usage_names_what_is_held_and_what_of_it_is_only_reserved(ana, lab, mo, eve):
    stored, _ = reserve(lab, 10, 20)
    services.complete(obj=stored, at=NOON)

    answer = factories.client(mo).get("/api/v1/storage").json()["items"]

    assert {"account": lab.pk, "name": "lab", "bytes": 30, "reserved_bytes": 20, "quota_bytes": 100} in answer
    assert len(answer) == 2
    stranger = factories.client(eve).get("/api/v1/storage").json()["items"]
    assert [account["name"] for account in stranger] == ["eve"]
