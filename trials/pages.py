"""Read-only pages: what the API says of sessions and trials, for a person to look at."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from hub.accounts.actors import Actor
from hub.accounts.auth import page_actor
from hub.core.problems import Problem
from trials import plot, readings
from trials.models import Trial, TrialLog, TrialSession
from trials.rules import live
from trials.serializers import SessionDetail, TrialAnswer
from trials.services import log_series

SESSIONS_SHOWN = 50
PLOT_BUCKETS = 300


@dataclass(frozen=True)
class Look:
    """Who looks, and when: what the API's serializers ask of their view."""

    by: Actor
    at: datetime


@login_required
@require_safe
def sessions(request: HttpRequest) -> HttpResponse:
    look = _look(request)
    seen = TrialSession.objects.visible_to(look.by).select_related("campaign", "device", "campaign__robot")
    found = readings.with_trials(seen).order_by("-pk")[:SESSIONS_SHOWN]
    rows = [readings.reading_of(row, list(row.trials.all()), past=(), at=look.at) for row in found]
    return render(request, "trials/sessions.html", {"sessions": rows, "here": "sessions"})


@login_required
@require_safe
def session(request: HttpRequest, session_id: str) -> HttpResponse:
    look = _look(request)
    seen = TrialSession.objects.visible_to(look.by).select_related("campaign__robot", "device")
    row = get_object_or_404(seen, pk=session_id)
    reading = readings.read_session(row, at=look.at)
    said = SessionDetail(reading, context={"view": look}).data
    live_now = [(each, notice) for each in reading.trials for notice in _notices(each, at=look.at)]
    context = {"session": row, "said": said, "live": live_now, "here": "sessions"}
    return render(request, "trials/session.html", context)


@login_required
@require_safe
def trial(request: HttpRequest, trial_id: str) -> HttpResponse:
    look = _look(request)
    seen = readings.in_order(Trial.objects.visible_to(look.by))
    row = get_object_or_404(seen.select_related("session__campaign__robot", "session__device"), pk=trial_id)
    said = TrialAnswer(readings.read_trial(row, at=look.at), context={"view": look}).data
    context: dict[str, Any] = {"trial": row, "session": row.session, "said": said, "here": "sessions"}
    context["notices"] = _notices(row, at=look.at)
    return render(request, "trials/trial.html", {**context, **_tilt(row, said["run_sheet"])})


def _look(request: HttpRequest) -> Look:
    return Look(by=page_actor(request), at=timezone.now())


def _notices(row: Trial, *, at: datetime) -> list[live.Notice]:
    approval, device = row.approval, row.session.device
    word = live.Word(
        approval=approval.state_at(at) if approval else None,
        stop_requested_at=approval.stop_requested_at if approval else None,
        heartbeat=device.heartbeat if device else None,
        heartbeat_at=device.heartbeat_at if device else None,
    )
    return live.notices(word, at=at, silence=settings.NO_WORD_AFTER)


def _tilt(row: Trial, sheet: Any) -> dict[str, Any]:
    """The tilt over time as a drawing, or the reason why there is none."""
    log = readings.log_of(row)
    if log is None or log.state != TrialLog.State.UPLOADED:
        return {}
    try:
        found = log_series.read_series(log, channels="tilt", buckets=PLOT_BUCKETS)
    except Problem as refusal:
        return {"no_tilt": refusal.detail or refusal.title}
    return {"tilt": plot.tilt(found, summary=log.summary or {}, sheet=row.run_sheet.document)}
