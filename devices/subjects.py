"""
What an approval can be about: a table of kinds, filled by the apps above when they start.

A table and no signal: each kind has exactly one handler, it runs inside the transaction of the act, and its
failure stops the act.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from devices.models import Approval
from driver.wire import canonical
from hub.core.problems import Conflict


class OutOfOrder(Conflict):
    """Raised by a subject whose turn has not come; it names the trial that comes first."""

    slug = "out-of-order"
    title = "Something else comes first."


@dataclass(frozen=True, kw_only=True)
class Frozen:
    """What a person consents to: the bytes under the digest, and what the token says of them."""

    claims: Mapping[str, Any]
    document: bytes

    @property
    def sha256(self) -> str:
        return canonical.sha256_hex(self.document)


class Subject(Protocol):
    """One kind of thing that runs on a device. Each method is called under the lock of the approval's row."""

    def describe(self, approval: Approval) -> str:
        """Say what would run, for the consent page and the record: `the first control, walk-7 step 700`."""

    def freeze(self, approval: Approval, at: datetime) -> Frozen:
        """
        Lock the document against change, under its own lock, and give what goes into the token.

        The claims are session_id, trial_id and position. An act that is refused afterwards undoes the lock.
        """

    def check_start(self, approval: Approval, at: datetime) -> None:
        """:raises OutOfOrder: unless its turn has come"""


_SUBJECTS: dict[str, Subject] = {}


def register(kind: str, subject: Subject) -> None:
    """Add the handler of a kind. A kind has one, so a second is a mistake in the code."""
    if kind in _SUBJECTS:
        raise RuntimeError(f"subjects of kind {kind} have a handler already")
    _SUBJECTS[kind] = subject


def of(approval: Approval) -> Subject:
    return _SUBJECTS[approval.subject_kind]
