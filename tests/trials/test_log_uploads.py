"""Where a box may put its logs (C4-20): bound URLs, counted before they come."""

from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from pytest_django import Settings

from hub.core.problems import Unprocessable
from hub.storage.models import StorageUsage, StoredObject
from hub.storage.services import OverQuota
from tests.factories import NOON
from tests.trials import factories as made
from tests.trials.factories import Bench
from trials.models import LogUpload, Trial
from trials.services.log_uploads import LogTooLarge, NoLogNow, Opened, open_log_upload

pytestmark = pytest.mark.usefixtures("object_store")


@pytest.fixture
def trial(bench: Bench) -> Trial:
    """A first control that has run."""
    return bench.run(made.trials_of(bench.decide())[0])


def declared(name: str = "02-floor.csv", stage: str = "floor", size: int = 1000) -> Any:
    return {"name": name, "stage": stage, "bytes": size, "sha256": "a" * 64}


def ask(trial: Trial, *files: Any) -> list[Opened]:
    return open_log_upload(trial=made.fresh(trial), files=list(files) or [declared()], at=NOON)


def test_c4_20_each_file_gets_a_url_bound_to_its_length_and_sha256_for_an_hour(trial: Trial) -> None:
    (opened,) = ask(trial)

    url = urlsplit(opened.put.url)
    signed = parse_qs(url.query)["X-Amz-SignedHeaders"][0].split(";")
    assert {"content-length", "x-amz-checksum-sha256"} <= set(signed)
    assert opened.put.expires_at == NOON + timedelta(hours=1)
    assert f"/trials/{trial.pk}/log/incoming/" in url.path
    assert url.path.endswith("/02-floor.csv")


def test_c4_21_declared_sizes_count_towards_the_session_owners_quota(bench: Bench, trial: Trial) -> None:
    before = StorageUsage.objects.filter(account=bench.owner).values_list("bytes", flat=True).first() or 0

    ask(trial, declared(size=700), declared("01-hang.csv", "hang", size=300))

    assert StorageUsage.objects.get(account=bench.owner).bytes == before + 1000


def test_c4_21_over_the_quota_there_is_no_url_and_no_reservation(trial: Trial, settings: Settings) -> None:
    settings.STORAGE_QUOTA_BYTES = 1500

    with pytest.raises(OverQuota):
        ask(trial, declared(size=1000), declared("01-hang.csv", "hang", size=1000))

    assert not LogUpload.objects.exists()
    assert not StoredObject.objects.filter(state="reserved").exists()


def test_asking_again_for_a_file_replaces_its_reservation(trial: Trial, settings: Settings) -> None:
    settings.STORAGE_QUOTA_BYTES = 1500
    ask(trial)

    ask(trial)

    assert StoredObject.objects.filter(state="reserved").count() == 1


def test_asking_for_another_file_leaves_the_first(trial: Trial) -> None:
    ask(trial)
    ask(trial, declared("01-hang.csv", "hang"))

    assert StoredObject.objects.filter(state="reserved").count() == 2


@pytest.mark.parametrize("state", ["requested", "issued", "declined"])
def test_c4_20_before_the_run_has_started_there_is_no_upload(bench: Bench, state: str) -> None:
    trial = made.trials_of(bench.decide())[0]
    {
        "requested": lambda: None,
        "issued": lambda: bench.consent(trial),
        "declined": lambda: bench.decline(trial),
    }[state]()

    with pytest.raises(NoLogNow) as refused:
        ask(trial)

    assert refused.value.members["state"] == state


def test_c4_20_while_the_run_goes_on_there_is(bench: Bench) -> None:
    trial = made.trials_of(bench.decide())[0]
    bench.consent(trial)
    bench.start(trial)

    assert len(ask(trial)) == 1


def test_c4_20_once_a_log_is_recorded_there_is_none(bench: Bench, trial: Trial) -> None:
    bench.lose_log(trial)

    with pytest.raises(NoLogNow):
        ask(trial)


@pytest.mark.parametrize("name", ["", ".csv", "../02-floor.csv", "a b.csv", "02-floor", "x" * 80 + ".csv"])
def test_a_name_that_could_be_a_path_or_nothing_is_refused(trial: Trial, name: str) -> None:
    with pytest.raises(Unprocessable):
        ask(trial, declared(name))


def test_names_that_differ_only_in_their_case_are_refused(trial: Trial) -> None:
    with pytest.raises(Unprocessable):
        ask(trial, declared("02-floor.csv"), declared("02-FLOOR.csv"))


def test_a_stage_that_the_sheet_does_not_have_is_refused_by_name(trial: Trial) -> None:
    with pytest.raises(Unprocessable) as refused:
        ask(trial, declared(), declared("04-jump.csv", "jump"))

    assert list(refused.value.members["errors"]) == ["files.1.stage"]


def test_a_file_has_at_most_the_stated_size(trial: Trial, settings: Settings) -> None:
    settings.LOG_BYTES = 1000
    ask(trial, declared(size=1000))

    with pytest.raises(LogTooLarge):
        ask(trial, declared(size=1001))
