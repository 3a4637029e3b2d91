"""Stilt's policy: `tanh(W · obs + b)`, where a joint sees the body, the command, the gait and itself."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from driver.bodies.base import Array

SIDE = ("hip_roll", "hip_pitch", "knee", "ankle_pitch", "ankle_roll")
ARMS = ("left_shoulder_pitch", "right_shoulder_pitch")
JOINTS = (*(f"left_{name}" for name in SIDE), *(f"right_{name}" for name in SIDE), *ARMS)
DEFAULT = np.array([*(2 * [0.0, -0.45, 0.9, -0.45, 0.0]), 0.1, 0.1])
SCALE = np.array([*(2 * [0.3, 0.5, 0.6, 0.5, 0.3]), 0.5, 0.5])
STIFFNESS = np.array([*(2 * [50.0, 50.0, 50.0, 6.0, 6.0]), 8.0, 8.0])
DAMPING = np.array([*(2 * [1.5, 1.5, 1.5, 0.4, 0.4]), 0.3, 0.3])
TERMS = (
    "base_ang_vel",
    "projected_gravity",
    "velocity_command",
    "joint_pos",
    "joint_vel",
    "actions",
    "gait_phase",
    "gait_phase_command",
)
GAIT_HZ = 1.6
HOLD_BELOW = 0.02
PER = 0.25

WIDTH = 49
OWN = np.array([[9 + joint, 21 + joint, 33 + joint] for joint in range(12)])
COMMON = np.array([*range(9), *range(45, 49)])
_FREE = 17  # 13 common inputs, a joint's own position, velocity and last action, and its bias

LEFT = np.array([0, 1, 2, 3, 4, 10])
RIGHT = np.array([5, 6, 7, 8, 9, 11])
SIGN = np.array([-1.0, 1, 1, 1, -1, 1])  # how a right joint mirrors the left one
# How the body, the command and the gait look in a mirror. Half a cycle lies between the feet.
MIRROR = np.array([-1.0, 1, -1, 1, -1, 1, 1, -1, -1, -1, -1, -1, -1])


@dataclass(frozen=True)
class Weights:
    matrix: Array  # 12 × 49
    bias: Array

    def action(self, observation: Array) -> Array:
        action: Array = np.tanh(self.matrix @ observation + self.bias)
        return action


def count(*, tied: bool) -> int:
    """How many numbers are free: 17 for each joint, or for each of the left ones."""
    return (len(LEFT) if tied else len(JOINTS)) * _FREE


def weights(free: Array, *, tied: bool) -> Weights:
    """The policy of these free numbers. Tied, the right side is the left one's mirror image."""
    table = free.reshape(-1, _FREE)
    if tied:
        reflected = table * SIGN[:, None]
        reflected[:, : len(COMMON)] *= MIRROR
        reflected[:, len(COMMON) : -1] *= SIGN[:, None]  # its own joint changes its sign as well
        both = np.empty((len(JOINTS), table.shape[1]))
        both[LEFT], both[RIGHT] = table, reflected
        table = both
    matrix = np.zeros((len(JOINTS), WIDTH))
    matrix[:, COMMON] = table[:, : len(COMMON)]
    np.put_along_axis(matrix, OWN, table[:, len(COMMON) : -1], axis=1)
    return Weights(matrix, table[:, -1].copy())


def save(policy: Weights, path: Path, *, run: str) -> None:
    """Write one ONNX file with the metadata that mjlab's exporter would leave, and the gait's frequency."""
    graph = helper.make_graph(
        [
            helper.make_node("Gemm", ["obs", "weight", "bias"], ["sum"], transB=1),
            helper.make_node("Tanh", ["sum"], ["actions"]),
        ],
        "policy",
        [helper.make_tensor_value_info("obs", TensorProto.FLOAT, [1, WIDTH])],
        [helper.make_tensor_value_info("actions", TensorProto.FLOAT, [1, len(JOINTS)])],
        [
            numpy_helper.from_array(policy.matrix.astype(np.float32), "weight"),
            numpy_helper.from_array(policy.bias.astype(np.float32), "bias"),
        ],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10, producer_name="stilt"
    )
    for key, value in _metadata(run).items():
        model.metadata_props.add(key=key, value=value)
    onnx.save(model, str(path))


def _metadata(run: str) -> dict[str, str]:
    return {
        "run_path": f"stilt/{run}",
        "joint_names": ",".join(JOINTS),
        "joint_stiffness": _written(STIFFNESS),
        "joint_damping": _written(DAMPING),
        "default_joint_pos": _written(DEFAULT),
        "command_names": "twist",
        "observation_names": ",".join(TERMS),
        "action_scale": _written(SCALE),
        "gait_frequency": f"{GAIT_HZ:.3f}",
    }


def _written(values: NDArray[np.float64]) -> str:
    return ",".join(f"{value:.3f}" for value in values)
