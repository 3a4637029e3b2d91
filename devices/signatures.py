"""How a device says who it is: an RFC 9421 signature on the request, by the key it enrolled with."""

import re
from collections.abc import Sequence
from datetime import datetime

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.http import HttpRequest

from devices.models import Device, DeviceKey, Nonce
from driver.wire import base64url, moments, requests
from driver.wire.requests import BadRequestSignature, ClockOutside, SignedBy
from hub.accounts import actors
from hub.accounts.actors import Actor
from hub.core.problems import NotSignedIn

_DEVICE_ID = re.compile(r"dev_[0-9a-z]{1,28}", re.ASCII)


class WrongRequestSignature(NotSignedIn):
    slug = "request-signature"
    title = "The request's signature does not hold."


class ClockIsOutside(NotSignedIn):
    slug = "clock-outside"
    title = "The device's clock is too far from the hub's."


class DeviceRevoked(NotSignedIn):
    """Said only to who holds the key: a box that runs something then knows that it is to stop."""

    slug = "device-revoked"
    title = "This device was revoked."


class Replayed(NotSignedIn):
    slug = "request-replayed"
    title = "This signed request has been here before."


REFUSALS = (WrongRequestSignature, ClockIsOutside, DeviceRevoked, Replayed)


def device(request: HttpRequest, *, at: datetime) -> Actor | None:
    """
    The active device that signed a request, or nobody where no signature is meant for the hub.

    :raises WrongRequestSignature: naming the addresses the hub checked it for
    :raises ClockIsOutside: with the hub's time, so that the device can correct itself
    :raises DeviceRevoked: to a device whose key counts no more
    :raises Replayed: when device and nonce have been seen together
    """
    if f'tag="{requests.TAG}"' not in request.headers.get("Signature-Input", ""):
        return None
    signed = _verified(request, at=at)
    _check_active(signed)
    _use_nonce(signed, at=at)
    _note_seen(signed.device_id, at=at)
    return actors.device(signed.device_id)


def _verified(request: HttpRequest, *, at: datetime) -> SignedBy:
    urls = [origin + request.get_full_path() for origin in settings.DEVICE_ORIGINS]
    refusals = set()
    for url in urls:
        try:
            return _verified_for(url, request, at=at)
        except ClockOutside as why:
            raise ClockIsOutside(f"Set it to the hub's time: {why}.", now=moments.write(at)) from why
        except BadRequestSignature as why:
            refusals.add(why.reason)
    raise WrongRequestSignature(
        f"{'; '.join(sorted(refusals))}. The hub checked it for {' and '.join(urls)}.", urls=urls
    )


def _verified_for(url: str, request: HttpRequest, *, at: datetime) -> SignedBy:
    return requests.verify_request(
        method=request.method or "",
        url=url,
        headers=request.headers,
        body=request.body,
        public_key_of=_public_keys,
        now=at,
    )


def _public_keys(device_id: str) -> Sequence[bytes]:
    """The newest key of a device. A pending and an unknown one have none, both alike."""
    if not _DEVICE_ID.fullmatch(device_id):
        return []
    keys = DeviceKey.objects.filter(device=device_id, active_until=None)
    return [base64url.decode(key) for key in keys.values_list("public_key", flat=True)]


def _check_active(signed: SignedBy) -> None:
    if not Device.objects.active().filter(pk=signed.device_id).exists():
        raise DeviceRevoked("Stop what runs. To be used again, the box has to enrol as a new device.")


def _use_nonce(signed: SignedBy, *, at: datetime) -> None:
    """Count a request once. It is written only now that the signature holds: no stranger fills the table."""
    try:
        with transaction.atomic():
            Nonce.objects.create(device_id=signed.device_id, nonce=signed.nonce, seen_at=at)
    except IntegrityError:
        raise Replayed("Sign it again with a new nonce.") from None


def _note_seen(device_id: str, *, at: datetime) -> None:
    """Write down that a device is there, but not on each of its requests."""
    is_due = Q(last_seen_at=None) | Q(last_seen_at__lte=at - settings.DEVICE_SEEN_NOTED_EVERY)
    Device.objects.filter(is_due, pk=device_id).update(last_seen_at=at)


def sweep_nonces(*, at: datetime) -> int:
    """Forget the nonces of requests whose date alone refuses them by now; it may have lain ahead."""
    outlived = at - 2 * requests.CLOCK_TOLERANCE
    return Nonce.objects.filter(seen_at__lt=outlived).delete()[0]
