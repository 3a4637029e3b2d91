import pytest
from rest_framework.test import APIClient

from hub.accounts.models import User
from hub.campaigns.models import Campaign
from tests import factories
from tests.hub.campaigns import factories as made


@pytest.fixture
def browser(ana: User) -> APIClient:
    """Ana's."""
    return factories.client(ana)


@pytest.fixture
def campaign(ana: User) -> Campaign:
    """One of ana's own account."""
    return made.campaign(ana.account)
