"""Opens an ONNX file as data: its ports and its metadata. Nothing of it is run."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from driver.contract.document import BadContract

MAX_BYTES = 256 * 1024 * 1024
MAX_METADATA = 256
MAX_METADATA_CHARACTERS = 1024 * 1024
STANDARD_DOMAINS = frozenset({"", "ai.onnx"})
# A loop may never end and a branch may hide what was not looked at.
REFUSED_OPERATORS = frozenset({"Loop", "If", "Scan"})


@dataclass(frozen=True)
class Exported:
    """What an exported policy says of itself: width and rank of each port, and the metadata."""

    inputs: dict[str, int]
    ranks: dict[str, int]
    outputs: dict[str, int]
    metadata: dict[str, str]


def read_ports(raw: bytes, *, name: str) -> Exported:
    """
    Read ports and metadata of a file that keeps every rule for a policy.

    :raises BadContract: naming the rule that it breaks
    """
    model = parse(raw, name=name)
    check_model(model, name=name)
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = [port for port in model.graph.input if port.name not in weights]
    return Exported(
        inputs={port.name: _width(port) for port in inputs},
        ranks={port.name: len(_dimensions(port)) for port in inputs},
        outputs={port.name: _dimensions(port)[-1] for port in model.graph.output if _is_flat(port)},
        metadata=_metadata(model),
    )


def read_bytes(path: Path) -> bytes:
    """The file's bytes, when there are not too many of them."""
    if not path.is_file():
        raise BadContract({"file": [f"{path.name} is not a file"]})
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise BadContract({"file": [f"{path.name} has {size} bytes; at most {MAX_BYTES} are read"]})
    return path.read_bytes()


def parse(raw: bytes, *, name: str) -> onnx.ModelProto:
    """The model, without the weights that it may keep elsewhere."""
    try:
        model = onnx.load_model_from_string(raw)
    except DecodeError:
        raise BadContract({"file": [f"{name} is not an ONNX model"]}) from None
    if not model.graph.input or not model.graph.output:
        raise BadContract({"file": [f"{name} has no inputs and outputs: it is not a policy"]})
    return model


def check_model(model: onnx.ModelProto, *, name: str) -> None:
    """Refuse what could run something else than what was looked at, or run without an end."""
    if model.ir_version > onnx.IR_VERSION:
        raise BadContract(
            {"file": [f"{name} has IR version {model.ir_version}; up to {onnx.IR_VERSION} can be read"]}
        )
    elsewhere = external_files(model)
    if elsewhere:
        raise BadContract({"file": [_shell(name, elsewhere)]})
    own = STANDARD_DOMAINS | {function.domain for function in model.functions}
    for node in _nodes(model):
        if node.domain not in own:
            raise BadContract(
                {
                    "file": [
                        f"{name} uses the operator {node.domain}.{node.op_type:.60}; only standard ones run"
                    ]
                }
            )
        if node.op_type in REFUSED_OPERATORS:
            raise BadContract(
                {"file": [f"{name} uses {node.op_type}; a policy has neither loops nor branches"]}
            )


def external_files(model: onnx.ModelProto) -> list[str]:
    """Where the weights are that are not in the file itself."""
    found = set()
    for tensor in _tensors(model):
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            said = {entry.key: entry.value for entry in tensor.external_data}
            found.add(said.get("location", "?"))
    return sorted(found)


def _shell(name: str, elsewhere: list[str]) -> str:
    return (
        f"the weights of {name} are in {', '.join(elsewhere)[:120]}: a digest over a shell approves nothing. "
        f"Make one file of them with `trial-driver pack {name}` and use that one"
    )


def _graphs(model: onnx.ModelProto) -> Iterator[onnx.GraphProto]:
    waiting = [model.graph]
    waiting += [info.algorithm for info in model.training_info]
    waiting += [info.initialization for info in model.training_info]
    functions = [node for function in model.functions for node in function.node]
    waiting += _subgraphs(functions)
    while waiting:
        graph = waiting.pop()
        yield graph
        waiting += _subgraphs(graph.node)


def _subgraphs(nodes: object) -> list[onnx.GraphProto]:
    found = []
    for node in nodes:  # type: ignore[attr-defined]  # a repeated protobuf field
        for attribute in node.attribute:
            found += [attribute.g] if attribute.HasField("g") else []
            found += attribute.graphs
    return found


def _nodes(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    for graph in _graphs(model):
        yield from graph.node
    for function in model.functions:
        yield from function.node


def _tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    for graph in _graphs(model):
        yield from graph.initializer
        for sparse in graph.sparse_initializer:
            yield from (sparse.values, sparse.indices)
    for node in _nodes(model):
        for attribute in node.attribute:
            yield from (attribute.t, *attribute.tensors)
            for sparse in (attribute.sparse_tensor, *attribute.sparse_tensors):
                yield from (sparse.values, sparse.indices)


def _dimensions(port: onnx.ValueInfoProto) -> list[int]:
    """The port's sizes; what is not fixed reads as 0."""
    return [size.dim_value for size in port.type.tensor_type.shape.dim]


def _is_flat(port: onnx.ValueInfoProto) -> bool:
    """One row of numbers, with or without a batch size before it."""
    sizes = _dimensions(port)
    return bool(sizes) and sizes[-1] > 0 and len(sizes) <= 2 and all(size in {0, 1} for size in sizes[:-1])


def _width(port: onnx.ValueInfoProto) -> int:
    if not _is_flat(port):
        sizes = "x".join(str(size or "?") for size in _dimensions(port)) or "no size"
        raise BadContract(
            {"file": [f"the input {port.name:.60} has {sizes}; one row of a fixed width is needed"]}
        )
    if port.type.tensor_type.elem_type != onnx.TensorProto.FLOAT:
        raise BadContract({"file": [f"{port.name:.60} is not of 32-bit floats"]})
    return _dimensions(port)[-1]


def _metadata(model: onnx.ModelProto) -> dict[str, str]:
    """Key -> text. An exporter that ran twice leaves every key twice; that is fine while both agree."""
    if len(model.metadata_props) > MAX_METADATA:
        raise BadContract({"file": [f"more than {MAX_METADATA} metadata entries"]})
    found: dict[str, str] = {}
    for entry in model.metadata_props:
        if len(entry.value) > MAX_METADATA_CHARACTERS:
            raise BadContract({"file": [f"the metadata entry {entry.key:.60} is too long"]})
        if found.setdefault(entry.key, entry.value) != entry.value:
            raise BadContract({entry.key[:60]: ["the file's metadata has it twice with different values"]})
    return found
