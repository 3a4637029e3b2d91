from pathlib import Path

import numpy as np
import pytest

from driver.contract.document import BadContract, check_contract
from driver.contract.onnx_file import read_contract
from driver.policy import inference
from driver.policy.inference import Model, ModelFailed
from driver.wire import canonical
from tests.driver.models import METADATA, SIDECAR, WIDTH, linear, saved, still


def contract_of(path: Path):
    return check_contract(read_contract(path, sidecar=SIDECAR))


def test_a_model_says_one_number_for_each_joint(tmp_path: Path):
    weight = np.zeros((4, WIDTH))
    weight[:, 0] = [1.0, 2.0, 3.0, 4.0]
    path = saved(linear(weight, np.array([0.5, 0.0, 0.0, 0.0]), metadata=METADATA), tmp_path)
    feeds = {"obs": np.zeros(WIDTH, np.float32)}
    feeds["obs"][0] = 2.0

    with Model(path, contract_of(path)) as model:
        assert model.action(feeds).tolist() == [2.5, 4.0, 6.0, 8.0]


def test_a_model_without_a_batch_size_is_fed_as_it_wants(tmp_path: Path):
    path = saved(still(metadata=METADATA, rank=1), tmp_path)

    with Model(path, contract_of(path)) as model:
        model.warm_up()


def test_another_file_than_the_approved_one_is_not_loaded(tmp_path: Path):
    path = saved(still(metadata=METADATA), tmp_path)
    contract = contract_of(path)
    digest = canonical.sha256_hex(path.read_bytes())

    with Model(path, contract, sha256=digest) as model:
        model.warm_up()
    path.write_bytes(path.read_bytes().replace(b"walk/7", b"walk/8"))

    with pytest.raises(ModelFailed, match="approved"):
        Model(path, contract, sha256=digest)


def test_a_model_whose_ports_are_not_the_contracts_is_refused(tmp_path: Path):
    path = saved(still(metadata=METADATA), tmp_path)
    contract = contract_of(path)
    other = saved(still(width=WIDTH + 1), tmp_path, "other.onnx")

    with pytest.raises(BadContract, match="takes 22"):
        Model(other, contract)


def test_what_the_runtime_does_not_take_is_refused_in_words(tmp_path: Path):
    path = saved(still(metadata=METADATA), tmp_path)
    contract = contract_of(path)
    model = still(metadata=METADATA)
    model.graph.node[0].op_type = "NoSuchOperator"

    with pytest.raises(ModelFailed, match="cannot be loaded"):
        Model(saved(model, tmp_path), contract)


def slow(folder: Path, turns: int = 3000) -> Path:
    """A model that takes its time: many large products, one after the other, on the way to its actions."""
    from onnx import helper, numpy_helper

    model = still(metadata=METADATA)
    size = 256
    nodes = [
        helper.make_node("MatMul", ["big" if turn == 0 else f"p{turn - 1}", "big"], [f"p{turn}"])
        for turn in range(turns)
    ]
    nodes.append(helper.make_node("ReduceMean", [f"p{turns - 1}"], ["mean"], keepdims=0))
    nodes.append(helper.make_node("Mul", ["mean", "zero"], ["nothing"]))
    model.graph.node[-1].output[0] = "quick"
    nodes.append(helper.make_node("Add", ["quick", "nothing"], ["actions"]))
    model.graph.node.extend(nodes)
    # From the input, so that nothing of it can be worked out in advance.
    model.graph.node.insert(0, helper.make_node("ReduceSum", ["obs"], ["sum"], keepdims=0))
    model.graph.node.insert(1, helper.make_node("Add", ["ones", "sum"], ["big"]))
    model.graph.initializer.append(
        numpy_helper.from_array(np.full((size, size), 1 / size, np.float32), "ones")
    )
    model.graph.initializer.append(numpy_helper.from_array(np.float32(0), "zero"))
    return saved(model, folder)


def test_a_model_that_takes_too_long_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(inference, "DEADLINE_S", 0.01)
    monkeypatch.setattr(inference, "LOOK_EVERY_S", 0.005)
    path = slow(tmp_path)

    with Model(path, contract_of(path)) as model, pytest.raises(ModelFailed, match="terminate"):
        model.warm_up()
