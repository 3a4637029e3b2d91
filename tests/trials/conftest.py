from pathlib import Path

import pytest
from pytest_django import Settings

from hub.accounts.models import Account, User
from tests.trials import factories as made
from tests.trials.factories import Bench


@pytest.fixture(autouse=True)
def own_hub_keys(settings: Settings, tmp_path: Path) -> None:
    """Each test's hub has keys of its own."""
    settings.HUB_KEY_FILE = tmp_path / "hub.key"


@pytest.fixture
def bench(lab: Account, ana: User) -> Bench:
    """A campaign of ana's org with a locked round, and the one box that fits."""
    return made.bench(lab, ana)
