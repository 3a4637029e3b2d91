"""ONNX file (and sidecar) -> contract; and one file out of a model whose weights lie beside it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx

from driver.contract import graph, metadata, sidecar
from driver.contract.document import REQUIRED, BadContract, Contract, check_contract, document_of

_EXAMPLES = {
    "robot": 'robot = "my-robot"',
    "rate_hz": "rate_hz = 50",
    "joints": 'joints = ["…"], in the order of the actions',
    "default_joint_pos": "default_joint_pos = [0.0, …], one for each joint",
    "action_scale": "action_scale = [0.5, …] or one number",
    "observation": 'an [[observation]] for each term, such as term = "base_ang_vel"',
}


def read_contract(
    path: Path,
    *,
    sidecar: Mapping[str, Any] | None = None,
    robot: str | None = None,
    joints: Sequence[str] | None = None,
) -> dict[str, Any]:
    """The contract's document, from the file's ports and metadata and from what the sidecar adds.

    `robot` and `joints` are those of the robot it is meant for, where that is known.

    :raises BadContract: where something is missing, is said twice and differently, or does not fit the file
    """
    exported = graph.read_ports(graph.read_bytes(path), name=path.name)
    document = _gathered(exported, sidecar, robot)
    _ask_for_missing(document, exported)
    contract = check_contract(document)
    _check_robot(contract, robot, joints)
    check_ports(contract, exported)
    return document_of(contract)


def pack(path: Path, out: Path) -> None:
    """Write the model as one file, weights folded in, beside the old one or wherever `out` says.

    :raises BadContract: where a file of weights is missing, not in the model's own folder or too large
    """
    model = graph.parse(graph.read_bytes(path), name=path.name)
    for name in graph.external_files(model):
        _check_weights(path.parent, name)
    try:
        onnx.load_external_data_for_model(model, str(path.parent))
    except (OSError, ValueError, onnx.checker.ValidationError) as error:
        raise BadContract({"file": [f"the weights of {path.name} cannot be read: {error}"]}) from None
    graph.check_model(model, name=path.name)
    draft = out.with_name(f".{out.name}.part")
    draft.write_bytes(model.SerializeToString())
    draft.replace(out)


def check_ports(contract: Contract, exported: graph.Exported) -> None:
    """Names and widths of the file's ports are the contract's."""
    errors: dict[str, list[str]] = {}
    if set(contract.inputs) != set(exported.inputs):
        errors["input"] = [
            f"the file's inputs are {', '.join(exported.inputs)}, not {', '.join(contract.inputs)}"
        ]
    for name in contract.inputs.keys() & exported.inputs.keys():
        if contract.width(name) != exported.inputs[name]:
            errors["observation"] = [_sizes(contract, name, exported.inputs[name])]
    if contract.output not in exported.outputs:
        errors["output"] = [f"the file's outputs are {', '.join(exported.outputs)}, not {contract.output}"]
    elif exported.outputs[contract.output] != len(contract.joints):
        errors["joints"] = [
            f"there are {len(contract.joints)} and the output has {exported.outputs[contract.output]} actions"
        ]
    if errors:
        raise BadContract(errors)


def _gathered(
    exported: graph.Exported, beside: Mapping[str, Any] | None, robot: str | None
) -> dict[str, Any]:
    said = metadata.said_in(exported.metadata)
    added = sidecar.contract_table(beside or {})
    document = sidecar.completed(file=said, sidecar=added)
    if robot is not None:
        document.setdefault("robot", robot)
    for field, ports in (("input", exported.inputs), ("output", exported.outputs)):
        if field not in document:
            document[field] = _only(field, list(ports))
    return document


def _only(field: str, names: list[str]) -> str:
    if len(names) == 1:
        return names[0]
    if field == "output" and "actions" in names:
        return "actions"
    raise BadContract(
        {
            field: [
                f"the file has several ({', '.join(names)[:200]}): a sidecar must say which, as `{field} = …`"
            ]
        }
    )


def _ask_for_missing(document: Mapping[str, Any], exported: graph.Exported) -> None:
    dialect = metadata.other_dialect(exported.metadata)
    because = f"its metadata is {dialect}'s, which is not read" if dialect else "the file does not say it"
    missing = [field for field in REQUIRED if field not in document]
    if missing:
        raise BadContract(
            {field: [f"{because}: a sidecar must give {_EXAMPLES[field]}"] for field in missing}
        )


def _check_robot(contract: Contract, robot: str | None, joints: Sequence[str] | None) -> None:
    if robot is not None and contract.robot != robot:
        raise BadContract({"robot": [f"it is made for {contract.robot}, not for {robot}"]})
    strange = [name for name in contract.joints if joints is not None and name not in joints]
    if strange:
        raise BadContract({"joints": [f"the robot has no joint {', '.join(strange)[:200]}"]})


def _sizes(contract: Contract, name: str, width: int) -> str:
    wanted = [term for term in contract.observation if term.name in contract.inputs[name]]
    parts = " + ".join(f"{term.name} {term.size(len(contract.joints))}" for term in wanted)
    frames = f" over {contract.history_length} frames" if contract.history_length > 1 else ""
    return f"{parts}{frames} is {contract.width(name)}, and the input {name} takes {width}"


def _check_weights(folder: Path, name: str) -> None:
    weights = folder / name
    if Path(name).name != name or weights.is_symlink() or not weights.is_file():
        raise BadContract(
            {"file": [f"its weights are in {name[:120]}, which is no file in the model's own folder"]}
        )
    if weights.stat().st_size > graph.MAX_BYTES:
        raise BadContract({"file": [f"{name[:120]} is larger than {graph.MAX_BYTES} bytes"]})
