"""What the hub says of itself to boxes and verifiers."""

from datetime import datetime
from typing import Any

from django.conf import settings

from devices import keys
from hub.storage import s3


def pinned_by_devices(*, at: datetime) -> dict[str, Any]:
    """Whose signatures a device trusts, and the only hosts whose URLs it opens."""
    return {"keys": keys.published(at=at), "storage_hosts": [s3.public_host()]}


def about_the_hub(*, at: datetime) -> dict[str, Any]:
    return {"api": f"{settings.PUBLIC_ORIGIN}/api/v1", **pinned_by_devices(at=at)}
