from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower

from hub.core import ids

if TYPE_CHECKING:
    from hub.accounts.actors import Actor


class UserManager(BaseUserManager["User"]):
    def get_by_natural_key(self, username: str | None) -> "User":
        return self.get(email=normal_email(username or ""))


class User(AbstractBaseUser):
    """A person. The e-mail address is the name they sign in with."""

    id = ids.id_field("usr")
    email = models.EmailField(unique=True)
    name = models.CharField(max_length=100)
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField()

    USERNAME_FIELD = "email"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    objects = UserManager()

    class Meta:
        constraints = [
            models.CheckConstraint(name="email_in_lower_case", condition=Q(email=Lower("email"))),
        ]

    def __str__(self) -> str:
        return self.email


class Role(models.TextChoices):
    """What a person may do for an account; an operator reads, and stands beside the robot."""

    OWNER = "owner"
    MEMBER = "member"
    OPERATOR = "operator"


class AccountQuerySet(models.QuerySet["Account"]):
    def spoken_for_by(self, by: "Actor") -> "AccountQuerySet":
        """Accounts the actor speaks for, and so what it sees: the only visibility rule there is."""
        if by.user is not None:
            return self.filter(memberships__user=by.user)
        if by.key is not None:
            return self.filter(pk=by.key.account_id)
        return self.none()


class Account(models.Model):
    """Whoever can own something: one person, or an org."""

    class Kind(models.TextChoices):
        PERSON = "person"
        ORG = "org"

    id = ids.id_field("acc")
    kind = models.CharField(max_length=8, choices=Kind)
    name = models.CharField(max_length=100)
    person = models.OneToOneField(User, models.PROTECT, null=True, related_name="account")
    self_approval_allowed = models.BooleanField(default=True)
    created_at = models.DateTimeField()

    objects = AccountQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="account_is_a_persons_or_an_orgs",
                condition=Q(kind="person", person__isnull=False) | Q(kind="org", person=None),
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """A person speaks for an account. A person's own account has one, as its owner."""

    id = ids.id_field("mem")
    account = models.ForeignKey(Account, models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=8, choices=Role)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(name="one_membership_a_person", fields=["account", "user"]),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} {self.role} of {self.account_id}"


class OwnerLink(models.Model):
    """
    A printed link through which its reader chooses a password, once. Only its hash is here.

    Without a user it makes one: the first owner of a hub.
    """

    user = models.ForeignKey(User, models.CASCADE, null=True, related_name="owner_links")
    token_sha256 = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"link for {self.user_id or 'a first owner'}"


class Scope(models.TextChoices):
    READ = "key:read"
    WRITE = "key:write"


class ApiKeyQuerySet(models.QuerySet["ApiKey"]):
    def visible_to(self, by: "Actor") -> "ApiKeyQuerySet":
        return self.filter(account__in=Account.objects.spoken_for_by(by))

    def usable(self, *, at: datetime) -> "ApiKeyQuerySet":
        return self.filter(Q(expires_at=None) | Q(expires_at__gt=at), revoked_at=None)


class ApiKey(models.Model):
    """A program's way in. The secret is shown once; a hash and a readable prefix stay."""

    id = ids.id_field("key")
    account = models.ForeignKey(Account, models.CASCADE, related_name="api_keys")
    created_by = models.ForeignKey(User, models.PROTECT, related_name="+")
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=16)
    secret_sha256 = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField(default=list)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    objects = ApiKeyQuerySet.as_manager()

    def __str__(self) -> str:
        return self.prefix

    @property
    def may_write(self) -> bool:
        return Scope.WRITE in self.scopes

    @property
    def may_read(self) -> bool:
        return self.may_write or Scope.READ in self.scopes


def normal_email(email: str) -> str:
    """Two spellings of one address are one person."""
    return email.strip().lower()
