"""Makes the golden vectors that lie beside this file."""

import json
from pathlib import Path
from typing import Any

from driver.wire import base64url, canonical, csvlog, requests, robot, sheet, signatures, statements, summary
from driver.wire.summary import Judging, Protection, RunFacts, StageLog
from tests import keys
from tests.wire import samples

HERE = Path(__file__).parent
CODE = "abcdefghijklmnopqrst.0123456789abcdef"


def files() -> dict[Path, bytes]:
    """Every golden file but the hand-made ones in `logs/`, with what it must hold."""
    made = {
        "canonical.json": _canonical(),
        "keys.json": _keys(),
        "statements.json": _statements(),
        "sheet.json": _sheet(),
        "requests.json": _requests(),
        "summary.json": _rounded(summary_of_logs()),
    }
    return {
        HERE / name: (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()
        for name, value in made.items()
    }


VALUES: list[Any] = [
    None,
    True,
    [],
    {},
    0.0,
    -0.0,
    1.0,
    100.0,
    1e-6,
    1e-7,
    0.1 + 0.2,
    5e-324,
    1e15,
    9007199254740991,
    -9007199254740991,
    333333333.3333333,
    "",
    '\u20ac$\u000f\nA\'B"\\\\"/',
    "e\u0301 \u00e9",
    {"\U0001f600": 1, "\ufb33": 2, "b": 3, "": 4, "a": {"z": [1, {"y": None}], "é": False}},
]


def _canonical() -> list[dict[str, Any]]:
    written = [canonical.dumps(value) for value in VALUES]
    return [{"utf8": data.decode(), "sha256": canonical.sha256_hex(data)} for data in written]


def _keys() -> dict[str, dict[str, str]]:
    return {name: _key(name) for name in ("device", "hub", "stranger")}


def _key(name: str) -> dict[str, str]:
    public = keys.key(name).verify_key.encode()
    return {"public_hex": public.hex(), "public": base64url.encode(public), "kid": signatures.kid(public)}


def _statements() -> dict[str, dict[str, Any]]:
    device = keys.key("device").verify_key.encode()
    signed = {
        "trial_log": (samples.trial_log(), "device"),
        "trial_log_missing": (
            samples.trial_log(state="missing", files=[], summary=None, detail="the command wrote no file"),
            "device",
        ),
        **{f"event_{kind}": (samples.event(kind), "device") for kind in samples.EVENT_DATA},
        "enrol": (statements.enrol_payload(code=CODE, public_key=device, at=samples.NOON), "device"),
        "approval_token": (samples.approval_token(), "hub"),
        "go_on": (
            statements.go_on_payload(approval_id="apr_01", go_on=True, reason=None, at=samples.NOON),
            "hub",
        ),
    }
    return {name: _signed(payload, key) for name, (payload, key) in signed.items()}


def _signed(payload: dict[str, Any], key: str) -> dict[str, Any]:
    envelope = signatures.sign(payload, keys.key(key))
    return {"key": key, "bytes": canonical.dumps(payload).decode(), "envelope": envelope}


def _sheet() -> dict[str, Any]:
    document = samples.run_sheet()
    return {"bytes": sheet.sheet_bytes(document).decode(), "sha256": sheet.sheet_digest(document)}


def _requests() -> list[dict[str, Any]]:
    url = "https://hub.example/api/v1/devices/dev_01"
    return [
        _request(method="POST", url=f"{url}/events", body='{"payload":{}}'),
        _request(method="GET", url=f"{url}/approvals?state=issued", body=""),
    ]


def _request(*, method: str, url: str, body: str) -> dict[str, Any]:
    headers = requests.sign_request(
        method=method,
        url=url,
        headers={},
        body=body.encode(),
        key=keys.key("device"),
        device_id="dev_01",
        created=samples.NOON,
        nonce="AAECAwQFBgcICQoLDA0ODw",
    )
    return {"method": method, "url": url, "body": body, "headers": headers}


def summary_of_logs() -> dict[str, Any]:
    """The summary of the logs in `logs/`, which were worked out by hand: see the file beside them."""
    stages = [
        _stage("01-hang.csv", "hang", t0_s=0.0),
        _stage("02-floor.csv", "floor", t0_s=4.5, free_standing=True),
        StageLog(name="teleop", status="not_run", free_standing=True),
    ]
    pairs = robot.pairs_of(
        ["left_knee_joint", "right_knee_joint", "left_hip_roll_joint", "right_hip_roll_joint"],
        mirror={"knee": 1},
    )
    run = RunFacts(stopped_by="operator", reason="stop pressed", clamped_ticks=3, simulated=True)
    return summary.summarize(stages, judging=Judging(stage="floor", pairs=pairs), run=run)


def _rounded(value: Any) -> Any:
    """The ninth decimal is as far as processors agree about a cosine."""
    if isinstance(value, dict):
        return {key: _rounded(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_rounded(inner) for inner in value]
    return round(value, 9) if isinstance(value, float) else value


def _stage(file: str, name: str, *, t0_s: float, free_standing: bool = False) -> StageLog:
    return StageLog(
        name=name,
        log=csvlog.read((HERE / "logs" / file).read_bytes()),
        t0_s=t0_s,
        free_standing=free_standing,
        protection=Protection(armed=free_standing, threshold_deg=45.0 if free_standing else None),
    )
