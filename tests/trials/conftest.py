from pathlib import Path

import pytest
from django.utils import timezone
from pytest_django import Settings
from rest_framework.test import APIClient

from hub.accounts.models import Account, User
from tests import factories
from tests.trials import factories as made
from tests.trials.factories import Bench
from trials.models import Trial, TrialSession


@pytest.fixture(autouse=True)
def own_hub_keys(settings: Settings, tmp_path: Path) -> None:
    """Each test's hub has keys of its own."""
    settings.HUB_KEY_FILE = tmp_path / "hub.key"


@pytest.fixture
def bench(lab: Account, ana: User) -> Bench:
    """A campaign of ana's org with a locked round, and the one box that fits."""
    return made.bench(lab, ana)


@pytest.fixture
def browser(ana: User) -> APIClient:
    return factories.client(ana)


@pytest.fixture
def agent(bench: Bench) -> APIClient:
    return factories.key_client(factories.api_key(bench.by, account=bench.owner))


@pytest.fixture
def stranger(eve: User) -> APIClient:
    return factories.client(eve)


@pytest.fixture
def session(bench: Bench) -> TrialSession:
    """Planned just now, so that nothing has run out."""
    return bench.decide(at=timezone.now())


@pytest.fixture
def trial(session: TrialSession) -> Trial:
    return made.trials_of(session)[0]
