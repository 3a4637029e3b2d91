"""
Row locks, in the order they are taken in: campaigns, round, session, device, approvals, trial, run sheet.

A lock is taken first, and what is decided on is read after it. One statement that locks and joins would wait
on PostgreSQL, and then answer with the joined tables as they were before the wait.
"""

from collections.abc import Iterable

from devices.models import Approval, Device
from hub.campaigns.models import Campaign
from trials import readings
from trials.models import RunSheet, Trial, TrialSession


def hold_campaigns(pks: Iterable[str | None]) -> None:
    """Whoever reads whether lineages have ended, or what is on the robot, holds the campaigns."""
    named = {pk for pk in pks if pk is not None}
    list(Campaign.objects.select_for_update().filter(pk__in=named).order_by("pk"))


def session(row: TrialSession) -> TrialSession:
    TrialSession.objects.select_for_update().get(pk=row.pk)
    return TrialSession.objects.select_related("owner", "device", "campaign").get(pk=row.pk)


def device(row: Device) -> Device:
    """Against who revokes it, not against those who file for it too."""
    Device.objects.select_for_update(no_key=True).get(pk=row.pk)
    return Device.objects.select_related("robot").get(pk=row.pk)


def hold_approvals(row: TrialSession) -> None:
    """Every approval of a session: a start or a consent now comes before this act or after it."""
    list(Approval.objects.select_for_update().filter(trial__session=row).order_by("pk"))


def trial(row: Trial) -> Trial:
    Trial.objects.select_for_update().get(pk=row.pk)
    return readings.in_order(Trial.objects.filter(pk=row.pk)).select_related(*_SESSION).get()


def run_sheet(row: Trial) -> RunSheet:
    """A draft is changed, and frozen, under this lock alone: whoever commits first wins."""
    RunSheet.objects.select_for_update().get(trial=row)
    return RunSheet.objects.select_related("trial__session", "trial__checkpoint__run").get(trial=row)


_SESSION = (
    "session__owner",
    "session__device",
    "session__campaign__policy_on_robot__run",
)
