"""What the demo prints, as plain lines."""

from collections.abc import Iterator
from typing import Any

RESULTS = {
    "PASS": "✓ PASS",
    "FAIL": "✕ FAIL",
    "as_in_sim": "≈ as in sim",
    "differs_from_sim": "≠ differs from sim",
    "pending": "… pending",
    "unmeasured": "◌ unmeasured",
}


def number(value: float | None, places: int = 2) -> str:
    """A number, or a dash for one that the log cannot give."""
    return "–" if value is None else f"{value:.{places}f}"


def name_of(trial: dict[str, Any]) -> str:
    checkpoint = trial["checkpoint"]
    return f"{trial['position']}. {trial['role']:<9} {checkpoint['run']} step {checkpoint['step']}"


def sim(round_: dict[str, Any]) -> Iterator[str]:
    for result in round_["results"]:
        said = result["sim"]
        yield (
            f"  {result['run'] + ' step ' + str(result['step']):<16} {said['verdict']}: "
            f"{said['gates_passed']} of {said['gates']} gates, "
            f"upright in {said['seeds_upright']} of {said['seeds_run']} seeds"
        )


def run_of(trial: dict[str, Any]) -> str:
    log = trial["log"]
    if log["state"] != "uploaded":
        return f"{name_of(trial)}: log {log['state']}, {log['detail']}"
    summary = log["summary"]
    stages = ", ".join(f"{stage['name']} {stage['status']}" for stage in summary["stages"])
    return (
        f"{name_of(trial):<33} {stages}; tilt {number(summary['tilt_mean_deg'])}°, "
        f"falls {'–' if summary['falls'] is None else summary['falls']}; hub {log['hub_check']['state']}"
    )


def bracket(said: dict[str, Any]) -> Iterator[str]:
    words = {True: "holds", False: "does NOT hold: this session decides nothing", None: "says nothing"}
    reason = f" ({said['reason']})" if said["reason"] else ""
    yield f"The bracket {words[said['holds']]}{reason}"
    for row in said["metrics"]:
        limit = f"limit ±{row['tolerance']['value']:g}" if row["tolerance"] else "no limit"
        yield (
            f"  {row['metric']:<20} {number(row['first'], 3):>8} → {number(row['last'], 3):>8}  "
            f"difference {number(row['difference'], 3):>7}, {limit} "
            f"({'decides' if row['decides'] else 'advisory'})"
        )


def criteria(trial: dict[str, Any]) -> Iterator[str]:
    yield f"Criteria of {name_of(trial)}"
    for judged in trial["criteria"]:
        control = (judged.get("control") or {}).get("mean")
        yield (
            f"  {judged['metric']:<20} {judged['op']:<10} {number(judged.get('threshold')):>6}  "
            f"sim {number(judged.get('sim_value')):>6}  control {number(control):>6}  "
            f"this run {number(judged['value']):>6}  {RESULTS[judged['result']]}"
        )
