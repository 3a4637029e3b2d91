"""Who is asking: a person in a session, a key, a device, or the hub itself."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from hub.accounts.models import Account, AccountQuerySet, ApiKey, Membership, Role, User


class Kind(StrEnum):
    PERSON = "person"
    KEY = "key"
    DEVICE = "device"
    SYSTEM = "system"
    ANYBODY = "anybody"


@dataclass(frozen=True, kw_only=True)
class Actor:
    """The one who acts, as services and the audit know it. The label is what the audit keeps."""

    kind: Kind
    label: str
    user: User | None = None
    key: ApiKey | None = None
    device_id: str | None = None
    signed_in_at: datetime | None = None

    is_authenticated = True

    def accounts(self) -> AccountQuerySet:
        """What I speak for. A key speaks for its one account, a device for none."""
        return Account.objects.spoken_for_by(self)

    def role_in(self, account: Account) -> Role | None:
        """The role of a person in an account. Keys have scopes, not roles."""
        if self.user is None:
            return None
        membership = Membership.objects.filter(account=account, user=self.user).first()
        return Role(membership.role) if membership else None

    @property
    def person(self) -> User:
        """Who acts, where only a person may: the caller has made sure of that."""
        if self.user is None:
            raise LookupError(f"{self.label} is no person")
        return self.user

    @property
    def is_person(self) -> bool:
        return self.kind is Kind.PERSON


SYSTEM = Actor(kind=Kind.SYSTEM, label="the hub")
ANYBODY = Actor(kind=Kind.ANYBODY, label="anybody")


def person(user: User, *, signed_in_at: datetime | None = None) -> Actor:
    return Actor(kind=Kind.PERSON, label=user.email, user=user, signed_in_at=signed_in_at)


def key(api_key: ApiKey) -> Actor:
    return Actor(kind=Kind.KEY, label=f"key {api_key.prefix}…", key=api_key)


def device(device_id: str) -> Actor:
    return Actor(kind=Kind.DEVICE, label=device_id, device_id=device_id)
