from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import transaction
from django.test import override_settings
from pytest_django import DjangoDbBlocker

from tests.contract import callers, samples, world
from tests.contract.callers import Caller
from tests.contract.samples import Sample
from tests.contract.world import World


@pytest.fixture(scope="module")
def prepared(
    django_db_setup: None,
    django_db_blocker: DjangoDbBlocker,
    object_store: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[World]:
    """The prepared hub; nothing of it is ever committed."""
    key_file: Path = tmp_path_factory.mktemp("hub") / "hub.key"
    with django_db_blocker.unblock(), override_settings(HUB_KEY_FILE=key_file), transaction.atomic():
        yield world.build()
        transaction.set_rollback(True)


@pytest.fixture(scope="module")
def callers_of(prepared: World) -> dict[str, Caller]:
    return callers.all_of(prepared)


@pytest.fixture(scope="module")
def sample_of(prepared: World) -> dict[str, Sample]:
    return samples.all_of(prepared)


@pytest.fixture
def hub(prepared: World, db: None) -> World:
    """The prepared hub for one test, which may do to it what it likes: all is taken back."""
    return prepared
