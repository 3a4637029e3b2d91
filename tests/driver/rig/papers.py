"""Sheets, tokens and checkpoints as a hub would make them, for a robot of two joints."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import onnx
from nacl.signing import SigningKey
from onnx import TensorProto, helper

from driver.contract.document import contract_name
from driver.contract.onnx_file import read_contract
from driver.wire import canonical, signatures
from driver.wire.sheet import check_sheet, sheet_digest
from driver.wire.token import token_payload

JOINTS = ["left_knee_joint", "right_knee_joint"]
ROBOT = f"""
[robot]
slug = "hopper"
name = "Hopper, a robot of two joints"
joints = {JOINTS}
"""
SIDECAR = {
    "robot": "hopper",
    "rate_hz": 50,
    "joints": JOINTS,
    "default_joint_pos": [0.0, 0.0],
    "action_scale": [0.5, 0.5],
    "stiffness": [50.0, 50.0],
    "damping": [2.0, 2.0],
    "observation": [{"term": "joint_pos_rel"}, {"term": "command", "names": ["vx", "vy", "wz"]}],
}


def checkpoint(path: Path, *, weight: float = 0.1) -> bytes:
    """A real ONNX file: two actions from five observations."""
    shape = [1, 5]
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["obs", "w"], ["actions"])],
        "policy",
        [helper.make_tensor_value_info("obs", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("actions", TensorProto.FLOAT, [1, 2])],
        [helper.make_tensor("w", TensorProto.FLOAT, [5, 2], [weight] * 10)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, str(path))
    return path.read_bytes()


def contract(path: Path) -> dict[str, Any]:
    return read_contract(path, sidecar=SIDECAR, robot="hopper", joints=JOINTS)


def stage(name: str, **changes: Any) -> dict[str, Any]:
    usual = {
        "name": name,
        "duration_s": 1.0,
        "judged": name == "floor",
        "free_standing": name != "hang",
        "values": {"command": [0, 0, 0]},
    }
    return {**usual, **changes}


def sheet(n: int, onnx_sha256: str, contract: str, **changes: Any) -> dict[str, Any]:
    usual = {
        "version": 1,
        "trial_id": f"trl_{n:022d}",
        "session_id": f"ses_{1:022d}",
        "position": n,
        "role": "control",
        "checkpoint": {
            "id": f"ckp_{1:022d}",
            "run": "walk-7",
            "step": 700,
            "onnx_sha256": onnx_sha256,
            "contract": contract,
        },
        "stages": [stage("hang"), stage("floor")],
        "gain_profile": "policy",
        "kd_scale": 1.0,
        "power_scale": 1.0,
        "environment": {"floor": "lab rubber", "ambient_c": None, "battery_min_v": None, "notes": ""},
        "abort_rules": [{"metric": "tilt_deg", "op": ">", "value": 45.0, "for_s": 0.0, "stages": ["floor"]}],
        "judging": {
            "formulas": 1,
            "stage": "floor",
            "pairs": [{"name": "knee", "left": JOINTS[0], "right": JOINTS[1], "mirror": 1}],
        },
        "predictions": [],
        "criteria": [],
    }
    made = {**usual, **changes}
    check_sheet(made)
    return made


def token(
    sheet: dict[str, Any], *, approval_id: str, device_id: str, size: int, key: SigningKey, **changes: Any
) -> dict[str, Any]:
    now = datetime.now(UTC)
    checkpoint = sheet["checkpoint"]
    usual = {
        "approval_id": approval_id,
        "session_id": sheet["session_id"],
        "trial_id": sheet["trial_id"],
        "position": sheet["position"],
        "device_id": device_id,
        "robot": "hopper",
        "contract": checkpoint["contract"],
        "checkpoint_id": checkpoint["id"],
        "onnx_sha256": checkpoint["onnx_sha256"],
        "onnx_bytes": size,
        "run_sheet_sha256": sheet_digest(sheet),
        "issued_at": now,
        "expires_at": now + timedelta(hours=12),
        "approver": "ana",
    }
    return signatures.sign(token_payload(**{**usual, **changes}), key)


def name_of(contract: dict[str, Any]) -> str:
    return contract_name(contract)


def sha256(data: bytes) -> str:
    return canonical.sha256_hex(data)
