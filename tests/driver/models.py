"""Small ONNX policies made for a test, and the metadata an exporter would leave in them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

JOINTS = ("left_hip", "left_knee", "right_hip", "right_knee")

# What mjlab's exporter writes for a robot of four joints, with three decimals.
METADATA = {
    "run_path": "walk/7",
    "joint_names": ",".join(JOINTS),
    "joint_stiffness": "40.179,99.098,40.179,99.098",
    "joint_damping": "2.558,6.309,2.558,6.309",
    "default_joint_pos": "-0.312,0.669,-0.312,0.669",
    "command_names": "twist",
    "observation_names": "base_ang_vel,projected_gravity,velocity_commands,joint_pos,joint_vel,actions",
    "action_scale": "0.548,0.351,0.548,0.351",
}
WIDTH = 3 + 3 + 3 + 4 + 4 + 4
SIDECAR = {"robot": "walker", "rate_hz": 50}


def linear(
    weight: np.ndarray[Any, Any],
    bias: np.ndarray[Any, Any],
    *,
    metadata: Mapping[str, str] | Sequence[tuple[str, str]] = (),
    rank: int = 2,
) -> onnx.ModelProto:
    """`actions = obs · weightᵀ + bias`."""
    outputs, inputs = weight.shape
    sizes = ([1, inputs], [1, outputs]) if rank == 2 else ([inputs], [outputs])
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["obs", "weight"], ["product"]),
            helper.make_node("Add", ["product", "bias"], ["actions"]),
        ],
        "policy",
        [helper.make_tensor_value_info("obs", TensorProto.FLOAT, sizes[0])],
        [helper.make_tensor_value_info("actions", TensorProto.FLOAT, sizes[1])],
        [
            numpy_helper.from_array(weight.T.astype(np.float32), "weight"),
            numpy_helper.from_array(bias.astype(np.float32), "bias"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    for key, value in metadata.items() if isinstance(metadata, Mapping) else metadata:
        model.metadata_props.add(key=key, value=value)
    return model


def still(width: int = WIDTH, joints: int = 4, **said: Any) -> onnx.ModelProto:
    """A policy that always says 0."""
    return linear(np.zeros((joints, width)), np.zeros(joints), **said)


def saved(model: onnx.ModelProto, folder: Path, name: str = "policy.onnx") -> Path:
    path = folder / name
    path.write_bytes(model.SerializeToString())
    return path
