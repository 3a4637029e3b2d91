"""What people do with devices: name them, say which contracts they take, and end them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction

from devices.models import Device
from devices.services import approvals
from hub.accounts.actors import Actor
from hub.accounts.models import Account
from hub.accounts.permissions import may_manage
from hub.audit import services as audit
from hub.campaigns.models import Contract, Robot
from hub.core import patch
from hub.core.problems import Unprocessable

_CONTRACT = re.compile(r"[0-9a-f]{12}", re.ASCII)
_RATE = re.compile(r"[1-9][0-9]{0,3}(\.[0-9]{1,3})?", re.ASCII)


def contract_names(names: Iterable[str], *, robot: Robot) -> list[str]:
    """
    Put names in order, and refuse those that no contract of this robot has: a misspelt one accepts nothing.

    :raises Unprocessable: naming each
    """
    strange = [name for name in names if not _names_a_contract(name, robot=robot)]
    if strange:
        said = f"A contract of this robot is {robot.slug}/<12 hex digits>, all of one rate {robot.slug}@50"
        raise Unprocessable(
            errors={"accepted_contracts": [f"{said}, not {name!r:.100}." for name in strange]}
        )
    return sorted(set(names))


def device_for(*, owner: Account, contracts: Sequence[Contract]) -> Device | None:
    """The one active device of an account that accepts every contract; None where none or several do."""
    devices = Device.objects.active().filter(owner=owner).select_related("robot").order_by("pk")
    fitting = [device for device in devices if all(device.accepts(contract) for contract in contracts)]
    return fitting[0] if len(fitting) == 1 else None


@transaction.atomic
def update_device(*, device: Device, changes: Mapping[str, object], by: Actor, at: datetime) -> Device:
    """
    Change a device's name or the contracts it accepts. Saying what is so already changes nothing.

    :raises RoleForbidden: for everybody but an owner
    :raises Unprocessable: for names that no contract of the robot has
    """
    may_manage(by, device.owner)
    device = Device.objects.select_for_update(no_key=True).get(pk=device.pk)
    changed = patch.apply(device, _in_order(changes, robot=device.robot))
    if not changed:
        return device
    device.save(update_fields=changed)
    audit.record(
        "device.changed",
        by=by,
        account_id=device.owner_id,
        target=device,
        at=at,
        sentence=f"{by.label} changed the device {device.name}: {_what(device, changed)}.",
        **{field: getattr(device, field) for field in changed},
    )
    return device


@transaction.atomic
def revoke_device(*, device: Device, reason: str, by: Actor, at: datetime) -> Device:
    """
    End a device for good: its key counts no more, and nothing that was asked or permitted of it remains.

    What runs on it is asked to stop; only the robot can say that it has.

    :raises RoleForbidden: for everybody but an owner
    :raises WrongState: when it was revoked before
    """
    may_manage(by, device.owner)
    device = Device.objects.select_for_update(no_key=True).get(pk=device.pk)  # nothing is filed meanwhile
    device.move_to(Device.State.REVOKED)
    device.revoked_at = at
    device.save(update_fields=["state", "revoked_at"])
    audit.record(
        "device.revoked",
        by=by,
        account_id=device.owner_id,
        target=device,
        at=at,
        sentence=f"{by.label} revoked the device {device.name}{f': {reason}' if reason else ''}.",
        reason=reason,
    )
    approvals.end_all_of(device, by=by, at=at)
    return device


def _in_order(changes: Mapping[str, Any], *, robot: Robot) -> dict[str, Any]:
    if "accepted_contracts" not in changes:
        return dict(changes)
    return {**changes, "accepted_contracts": contract_names(changes["accepted_contracts"], robot=robot)}


def _names_a_contract(name: str, *, robot: Robot) -> bool:
    by_name, _, digest = name.rpartition("/")
    by_rate, _, rate = name.rpartition("@")
    return (by_name == robot.slug and _CONTRACT.fullmatch(digest) is not None) or (
        by_rate == robot.slug and _RATE.fullmatch(rate) is not None
    )


def _what(device: Device, changed: list[str]) -> str:
    said = {
        "name": "it has a new name",
        "accepted_contracts": f"it accepts {_few(device.accepted_contracts) or 'no contract'}",
    }
    return ", ".join(said[field] for field in changed)


def _few(names: Sequence[str]) -> str:
    shown = ", ".join(names[:3])
    return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown
