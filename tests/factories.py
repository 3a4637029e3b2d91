"""What tests start from, made through the services, so that no test starts where nobody could be."""

from datetime import UTC, datetime

from rest_framework.test import APIClient

from hub.accounts import actors, services
from hub.accounts.actors import SYSTEM, Actor
from hub.accounts.models import Account, ApiKey, Role, User
from hub.accounts.services import NewKey

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


def person(name: str = "ana", *, password: str | None = None) -> User:
    return services.create_person(email=f"{name}@lab.test", name=name, password=password, by=SYSTEM, at=NOON)


stranger = person


def org(name: str = "lab", *, owner: User) -> Account:
    return services.create_org(name=name, owner=owner, by=SYSTEM, at=NOON)


def member(name: str = "mo", *, org: Account, role: Role = Role.MEMBER) -> User:
    user = person(name)
    services.add_member(account=org, user=user, role=role, by=SYSTEM, at=NOON)
    return user


def operator(name: str = "oto", *, org: Account) -> User:
    return member(name, org=org, role=Role.OPERATOR)


def api_key(
    owner: User, *, account: Account | None = None, scopes: tuple[str, ...] = ("key:read", "key:write")
) -> NewKey:
    return services.create_api_key(
        account=account or owner.account,
        name="agent",
        scopes=list(scopes),
        expires_at=None,
        by=actor(owner),
        at=NOON,
    )


def actor(user: User, *, signed_in_at: datetime = NOON) -> Actor:
    return actors.person(user, signed_in_at=signed_in_at)


def key_actor(key: ApiKey) -> Actor:
    return actors.key(key)


def client(user: User | None = None) -> APIClient:
    """A browser in which this person, or nobody, has signed in."""
    browser = APIClient()
    if user is not None:
        browser.force_login(user)
    return browser


def key_client(new: NewKey) -> APIClient:
    """A program that calls with an API key."""
    program = APIClient()
    program.credentials(HTTP_AUTHORIZATION=f"Bearer {new.secret}")
    return program
