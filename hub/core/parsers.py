from collections.abc import Mapping
from typing import IO, Any

from django.conf import settings
from rest_framework.parsers import BaseParser

from driver.wire import canonical
from hub.core.problems import BadRequest, TooLarge


class StrictJSON(BaseParser):
    """JSON read as the wire reads it: what could mean two things is refused before DRF sees it."""

    media_type = "application/json"

    def parse(
        self,
        stream: IO[bytes],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        return read(stream.read(settings.BODY_BYTES + 1))


def read(raw: bytes) -> canonical.JSON:
    """
    Read the bytes of a body.

    :raises TooLarge: beyond the cap
    :raises BadRequest: for what is not strict JSON
    """
    if len(raw) > settings.BODY_BYTES:
        raise TooLarge(f"A body has at most {settings.BODY_BYTES} bytes.")
    try:
        return canonical.parse(raw)
    except canonical.NotStrict as why:
        raise BadRequest(f"The body is not strict JSON: {why}.") from why
