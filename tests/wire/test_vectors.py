import json
import math
from pathlib import Path
from typing import Any

import pytest

from driver.wire import canonical, requests, sheet, signatures, statements
from tests import keys
from tests.vectors import golden
from tests.wire import samples


def load(name: str) -> Any:
    return json.loads((golden.HERE / name).read_text("utf-8"))


@pytest.mark.parametrize(
    ("path", "data"), golden.files().items(), ids=lambda value: getattr(value, "name", "")
)
def test_what_the_wire_gives_is_what_it_gave(path: Path, data: bytes) -> None:
    assert path.read_bytes() == data, "the wire has changed: see tests/vectors/__init__.py"


def test_canonical_vectors_are_read_and_written_to_the_same_bytes() -> None:
    for vector in load("canonical.json"):
        raw = vector["utf8"].encode()
        assert canonical.dumps(canonical.parse(raw)) == raw
        assert canonical.sha256_hex(raw) == vector["sha256"]


def test_signed_vectors_verify_over_the_bytes_they_name() -> None:
    public = {name: bytes.fromhex(facts["public_hex"]) for name, facts in load("keys.json").items()}

    for vector in load("statements.json").values():
        assert signatures.verify(vector["envelope"], public[vector["key"]]).decode() == vector["bytes"]


def test_the_sheet_vector_is_taken_and_has_its_digest() -> None:
    vector = load("sheet.json")
    document = canonical.object_of(vector["bytes"].encode())

    sheet.check_sheet(document)

    assert sheet.sheet_digest(document) == vector["sha256"]
    assert (
        load("statements.json")["approval_token"]["envelope"]["payload"]["run_sheet_sha256"]
        == vector["sha256"]
    )


def test_statement_vectors_are_taken_by_their_own_checks() -> None:
    for name, vector in load("statements.json").items():
        payload = vector["envelope"]["payload"]
        if name.startswith("event_"):
            statements.check_device_event(payload)
        elif name.startswith("trial_log"):
            statements.check_trial_log(payload)


def test_request_vectors_verify() -> None:
    for vector in load("requests.json"):
        found = requests.verify_request(
            method=vector["method"],
            url=vector["url"],
            headers=vector["headers"],
            body=vector["body"].encode(),
            public_key_of=lambda _: [keys.key("device").verify_key.encode()],
            now=samples.NOON,
        )
        assert found.device_id == "dev_01"


def test_the_logs_worked_out_by_hand_come_to_their_numbers() -> None:
    found = golden.summary_of_logs()

    assert found["window"] == {"t0": 2.0, "t1": 4.0, "rows": 3}
    assert found["tilt_mean_deg"] == pytest.approx((math.degrees(math.acos(0.8)) + 90) / 2)
    assert found["tilt_max_deg"] == pytest.approx(90)
    assert found["asym_deg"] == pytest.approx({"knee": math.degrees(0.3), "hip_roll": math.degrees(0.1)})
    assert found["asym_max_deg"] == pytest.approx(math.degrees(0.3))
    assert found["tracking_error_rad"] == pytest.approx({"left_knee_joint": -0.2, "left_hip_roll_joint": 0.1})
    assert (found["log_hz"], found["loop_hz"], found["falls"]) == (1.0, 2.0, 1)
    assert found["motor_temps_c"] == {"left_knee_joint": 32.0, "right_knee_joint": 33.5}
    assert found["battery"] == {"start_v": 25.0, "end_v": 24.5}
    assert found["clock"] == {"dups": 1, "gaps": 1}
    assert found["dropped"] == {"torn_tail": 1, "blank_lines": 1, "empty_cells": 5}
