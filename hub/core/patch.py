"""PATCH: an absent key is unchanged, null clears an optional one."""

from collections.abc import Mapping
from typing import Any

from django.db import models

from hub.core.fields import Body


class Patch(Body):
    """The body of a PATCH. No key is required; only keys that may be cleared take null."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "partial": True})


def apply(row: models.Model, changes: Mapping[str, object]) -> list[str]:
    """Put changes on a row that the caller saves. What really changed comes back, as its update_fields."""
    changed = [name for name, value in changes.items() if getattr(row, name) != value]
    for name in changed:
        setattr(row, name, changes[name])
    return changed
