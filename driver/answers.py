"""What an answer of the hub means: told, refused for good, or try again. There is no fourth."""

from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

import httpx

from driver.exits import DriverError, Exit
from driver.wire import canonical, moments
from driver.wire.canonical import JSON

MAX_RETRY_AFTER_S = 120.0

T = TypeVar("T")


class HubRefused(DriverError):
    """The hub understood and will not: asking the same again changes nothing."""

    exit = Exit.REFUSED

    def __init__(self, status: int, problem: dict[str, JSON]) -> None:
        self.status, self.problem = status, problem
        said = problem.get("detail") or problem.get("title") or "no reason given"
        super().__init__(f"the hub refused ({status}): {said}")

    @property
    def slug(self) -> str:
        return str(self.problem.get("type", "")).rpartition("/")[2]

    @property
    def says_revoked(self) -> bool:
        """This box was revoked: said only to whoever holds its key, and for good."""
        return self.slug == "device-revoked"

    @property
    def is_about_the_box(self) -> bool:
        """The hub does not know who asks; what was asked is not judged, and may be asked again."""
        return self.status == 401 and not self.says_revoked

    @property
    def last_seq(self) -> int | None:
        value = self.problem.get("last_seq")
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def hub_time(self) -> datetime | None:
        value = self.problem.get("now")
        try:
            return moments.read(value) if isinstance(value, str) else None
        except moments.BadMoment:
            return None


class HubUnreachable(DriverError):
    """No answer, or none from the hub, or one that asks to try again."""

    exit = Exit.UNREACHABLE

    def __init__(self, said: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(said)
        self.retry_after_s = retry_after_s


def told(response: httpx.Response, raw: bytes) -> dict[str, JSON]:
    """
    Give the hub's answer.

    :raises HubRefused: for a problem document with a 4xx that is not 429
    :raises HubUnreachable: for everything else, a portal's page and a truncated answer too
    """
    status = response.status_code
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if status == 429 or status >= 500:
        raise HubUnreachable(f"the hub answered {status}", retry_after_s=_retry_after(response))
    if 200 <= status < 300 and kind == "application/json":
        return _object(raw)
    if 400 <= status < 500 and kind == "application/problem+json":
        raise HubRefused(status, _object(raw))
    raise HubUnreachable(
        f"{response.url.host} answered {status} with {kind or 'no'} content, not as the hub does"
    )


def _object(raw: bytes) -> dict[str, JSON]:
    try:
        return canonical.object_of(raw)
    except canonical.NotStrict as error:
        raise HubUnreachable(f"the hub's answer cannot be read: {error}") from None


def _retry_after(response: httpx.Response) -> float | None:
    """In seconds, also where it is said as a date; never longer than we are willing to wait."""
    said = response.headers.get("retry-after", "")
    try:
        wait = float(said) if said.isdigit() else _seconds_until(said, response)
    except ValueError:
        return None
    return min(max(wait, 0.0), MAX_RETRY_AFTER_S)


def _seconds_until(date: str, response: httpx.Response) -> float:
    now = parsedate_to_datetime(response.headers.get("date", ""))
    return (parsedate_to_datetime(date) - now).total_seconds()


def items(page: dict[str, JSON], key: str = "items") -> list[dict[str, JSON]]:
    found = page.get(key)
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise HubUnreachable(f"the hub's answer has no list of {key}")
    return [item for item in found if isinstance(item, dict)]


def text(item: dict[str, JSON], key: str) -> str:
    return _typed(item, key, str)


def integer(item: dict[str, JSON], key: str) -> int:
    return _typed(item, key, int)


def table(item: dict[str, JSON], key: str) -> dict[str, JSON]:
    return _typed(item, key, dict)


def _typed(item: dict[str, JSON], key: str, kind: type[T]) -> T:
    value = item.get(key)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise HubUnreachable(f"the hub's answer has no {key}")
    return value
