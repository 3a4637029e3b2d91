"""Numbers and states in the words of a page."""

from datetime import datetime
from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from driver.wire import moments

register = template.Library()

NOTHING = "–"
UNITS = {
    "tilt_mean_deg": "°",
    "tilt_max_deg": "°",
    "asym_max_deg": "°",
    "tracking_error_rad": " rad",
    "loop_hz": " Hz",
    "temp_max_c": " °C",
    "falls": "",
}
NAMES = {
    "tilt_mean_deg": "Tilt, mean",
    "tilt_max_deg": "Tilt, greatest",
    "asym_max_deg": "Asymmetry, worst pair",
    "tracking_error_rad": "Tracking error",
    "loop_hz": "Loop rate",
    "temp_max_c": "Motor temperature, greatest",
    "falls": "Falls",
}
OPERATORS = {"<=": "≤", ">=": "≥", "==": "=", "<": "<", ">": ">"}
CHIPS = {
    "PASS": ("good", "✓ PASS"),
    "FAIL": ("bad", "✕ FAIL"),
    "as_in_sim": ("info", "≈ as in sim"),
    "differs_from_sim": ("warn", "≠ differs from sim"),
    "pending": ("", "… pending"),
    "unmeasured": ("", "◌ unmeasured"),
    "needs_verdict": ("info", "▲ needs your verdict"),
    "awaiting_approval": ("info", "▲ consent asked"),
    "ready": ("info", "▲ ready"),
    "running": ("warn", "● running"),
    "awaiting_log": ("warn", "… awaiting log"),
    "planned": ("", "planned"),
    "measured": ("good", "✓ measured"),
    "decided": ("good", "✓ decided"),
    "closed": ("", "closed, did not run"),
    "agrees": ("good", "✓ agree"),
    "differs": ("bad", "✕ differ"),
    "unchecked": ("warn", "◌ unchecked"),
    "uploaded": ("good", "✓ verified"),
    "missing": ("bad", "✕ missing"),
    "malformed": ("bad", "✕ malformed"),
    "awaiting": ("", "… awaiting"),
    "done": ("good", "✓ done"),
    "aborted": ("bad", "✕ aborted"),
    "failed": ("bad", "✕ failed"),
    "not_run": ("", "not run"),
}
HOLDS = {True: ("good", "✓ holds"), False: ("bad", "✕ does not hold"), None: ("", "◌ says nothing yet")}


@register.filter
def chip(word: str) -> SafeString:
    """A state as a coloured word; the word alone says it too."""
    colour, said = CHIPS.get(word, ("", word))
    return format_html('<span class="chip {}">{}</span>', colour, said)


@register.filter
def bracket_chip(holds: bool | None) -> SafeString:
    return format_html('<span class="chip {}">{}</span>', *HOLDS[holds])


@register.filter
def metric_name(metric: str) -> str:
    return NAMES.get(metric, metric)


@register.filter
def measure(value: object, metric: str) -> str:
    """A number with its unit; what the log cannot give is a dash, never a zero."""
    if not isinstance(value, int | float):
        return NOTHING
    places = 0 if metric == "falls" else 3 if metric == "tracking_error_rad" else 2
    shown = round(value, places) + 0.0  # no minus before a zero
    return f"{shown:.{places}f}".replace("-", "−") + UNITS.get(metric, "")


@register.filter
def limit_of(judged: dict[str, Any]) -> str:
    """What a criterion asks for."""
    metric, op = judged["metric"], judged["op"]
    if op == "<=control":
        return "≤ control"
    if op == "as_in_sim":
        return f"as in sim ±{measure(judged.get('tolerance'), metric)}"
    return f"{OPERATORS[op]} {measure(judged.get('threshold'), metric)}"


@register.filter
def clock(moment: str | datetime | None) -> str:
    """A moment in UTC, to the minute."""
    if not moment:
        return NOTHING
    at = moments.read(moment) if isinstance(moment, str) else moment
    return f"{at:%d %b %H:%M} UTC"


@register.filter
def seconds(value: object) -> str:
    if not isinstance(value, int | float):
        return NOTHING
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min {rest} s" if minutes else f"{value:.0f} s"


@register.filter
def short_digest(digest: str) -> str:
    """The first eight characters, as the box shows them too."""
    return f"{digest[:4]}·{digest[4:8]}"
