from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from driver.contract import graph
from driver.contract.document import BadContract, contract_name
from driver.contract.onnx_file import pack, read_contract
from driver.contract.sidecar import parse_sidecar
from tests import cases
from tests.driver.models import JOINTS, METADATA, SIDECAR, WIDTH, linear, saved, still


def said(**changes: str) -> dict[str, str]:
    return METADATA | changes


def without(*keys: str) -> dict[str, str]:
    return {key: value for key, value in METADATA.items() if key not in keys}


def refusal(path: Path, sidecar: Mapping[str, Any] = SIDECAR, **more: Any) -> dict[str, list[str]]:
    with pytest.raises(BadContract) as refused:
        read_contract(path, sidecar=dict(sidecar), **more)
    return refused.value.errors


def test_the_files_metadata_and_a_short_sidecar_make_a_contract(tmp_path: Path):
    document = read_contract(saved(still(metadata=METADATA), tmp_path), sidecar=SIDECAR)

    assert document["joints"] == list(JOINTS)
    assert document["stiffness"] == [40.179, 99.098, 40.179, 99.098]
    assert document["rate_hz"] == 50
    assert [entry["term"] for entry in document["observation"]][2:4] == ["command", "joint_pos_rel"]


def test_keys_that_an_exporter_left_twice_are_fine_while_they_agree(tmp_path: Path):
    twice = [*METADATA.items(), *METADATA.items()]

    assert read_contract(saved(still(metadata=twice), tmp_path), sidecar=SIDECAR)["rate_hz"] == 50


def test_keys_that_are_there_twice_and_differ_are_refused(tmp_path: Path):
    twice = [*METADATA.items(), ("joint_damping", "1.0,1.0,1.0,1.0")]

    assert "joint_damping" in refusal(saved(still(metadata=twice), tmp_path))


def test_a_scalar_action_scale_is_for_every_joint(tmp_path: Path):
    path = saved(still(metadata=said(action_scale="0.5")), tmp_path)

    assert read_contract(path, sidecar=SIDECAR)["action_scale"] == [0.5] * 4


@pytest.mark.parametrize("key", ["observation_history_lengths", "observation_terms_history_length"])
def test_history_lengths_are_read_as_exporters_write_them(tmp_path: Path, key: str):
    metadata = said(**{key: "5.000,5.000,5.000,5.000,5.000,5.000"})
    path = saved(still(width=5 * WIDTH, metadata=metadata), tmp_path)

    document = read_contract(path, sidecar=SIDECAR | {"history": {"order": "term"}})

    assert document["history"] == {"length": 5, "order": "term"}


def test_the_order_of_a_history_must_be_said(tmp_path: Path):
    metadata = said(observation_history_lengths="5.000,5.000,5.000,5.000,5.000,5.000")

    assert "history.order" in refusal(saved(still(width=5 * WIDTH, metadata=metadata), tmp_path))


@pytest.mark.parametrize(
    "lengths", ["0.000,0.000,0.000,0.000,0.000,0.000", "1.000,1.000,1.000,1.000,1.000,0.000"]
)
def test_a_history_of_nothing_is_one_frame(tmp_path: Path, lengths: str):
    path = saved(still(metadata=said(observation_terms_history_length=lengths)), tmp_path)

    assert read_contract(path, sidecar=SIDECAR)["history"]["length"] == 1


def test_histories_of_different_lengths_are_refused(tmp_path: Path):
    metadata = said(observation_history_lengths="5.000,1.000,1.000,1.000,1.000,1.000")

    assert "observation_history_lengths" in refusal(saved(still(metadata=metadata), tmp_path))


def test_the_scales_of_the_terms_are_read(tmp_path: Path):
    path = saved(still(metadata=said(observation_terms_scale="0.200,1.000,None,1.000,0.050,1.000")), tmp_path)

    scales = [entry["scale"] for entry in read_contract(path, sidecar=SIDECAR)["observation"]]

    assert scales == [0.2, 1.0, 1.0, 1.0, 0.05, 1.0]


@pytest.mark.parametrize("clip", ["[-inf, inf],[-inf, inf]", "-inf;inf,-inf;inf", "None"])
def test_terms_without_a_clip_are_fine(tmp_path: Path, clip: str):
    path = saved(still(metadata=said(observation_term_clip=clip)), tmp_path)

    assert read_contract(path, sidecar=SIDECAR)


def test_a_clipped_observation_is_refused_because_nobody_would_clip_it(tmp_path: Path):
    metadata = said(observation_term_clip="[-inf, inf],[-100.0, 100.0]")

    assert "observation_term_clip" in refusal(saved(still(metadata=metadata), tmp_path))


def test_the_sidecar_may_say_a_rounded_number_more_exactly(tmp_path: Path):
    exact = [40.179238471, 99.098427777, 40.179238471, 99.098427777]

    document = read_contract(
        saved(still(metadata=METADATA), tmp_path), sidecar=SIDECAR | {"stiffness": exact}
    )

    assert document["stiffness"] == exact


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("stiffness", [40.179, 99.1, 40.179, 99.098]),
        ("stiffness", 40.179),
        ("default_joint_pos", [-0.312, 0.669, -0.312]),
        ("joints", ["left_knee", "left_hip", "right_hip", "right_knee"]),
        ("action_scale", 0.548),
    ],
)
def test_where_file_and_sidecar_disagree_the_field_is_named(tmp_path: Path, field: str, value: Any):
    path = saved(still(metadata=METADATA), tmp_path)

    assert refusal(path, SIDECAR | {field: value}).keys() == {field}


def test_terms_that_disagree_are_named_by_their_place(tmp_path: Path):
    terms = ["base_ang_vel", "projected_gravity", "command", "joint_vel", "joint_pos_rel", "last_action"]
    path = saved(still(metadata=METADATA), tmp_path)

    errors = refusal(path, SIDECAR | {"observation": [{"term": term} for term in terms]})

    assert errors.keys() == {"observation.3.term", "observation.4.term"}


def test_a_sidecar_may_use_the_exporters_names_for_terms(tmp_path: Path):
    terms = METADATA["observation_names"].split(",")
    path = saved(still(metadata=METADATA), tmp_path)

    assert read_contract(path, sidecar=SIDECAR | {"observation": [{"term": term} for term in terms]})


def test_a_file_without_metadata_is_completed_by_a_sidecar(tmp_path: Path):
    full = read_contract(saved(still(metadata=METADATA), tmp_path), sidecar=SIDECAR)

    bare = read_contract(saved(still(), tmp_path), sidecar=full)

    assert contract_name(bare) == contract_name(full)


def test_what_nobody_says_is_named_with_how_a_sidecar_would_say_it(tmp_path: Path):
    errors = refusal(saved(still(), tmp_path), {})

    assert errors.keys() == {"robot", "rate_hz", "joints", "default_joint_pos", "action_scale", "observation"}
    assert "rate_hz = 50" in errors["rate_hz"][0]


def test_another_dialect_is_named():
    path = cases.path("onnx/holosoma_ppo_g1.onnx")

    assert "holosoma" in refusal(path)["joints"][0]


def test_a_key_that_no_sidecar_has_is_refused(tmp_path: Path):
    path = saved(still(metadata=METADATA), tmp_path)

    assert refusal(path, {"contract": SIDECAR, "stifness": 1}).keys() == {"stifness"}
    assert refusal(path, SIDECAR | {"stifness": 1}).keys() == {"stifness"}


def test_the_robot_may_come_from_the_campaign(tmp_path: Path):
    path = saved(still(metadata=METADATA), tmp_path)

    assert read_contract(path, sidecar={"rate_hz": 50}, robot="walker")["robot"] == "walker"
    assert "robot" in refusal(path, SIDECAR, robot="other")


def test_a_joint_that_the_robot_lacks_is_refused(tmp_path: Path):
    path = saved(still(metadata=METADATA), tmp_path)

    errors = refusal(path, joints=["left_hip", "right_hip", "left_knee"])

    assert "right_knee" in errors["joints"][0]


def test_terms_that_do_not_add_up_to_the_input_are_refused_with_the_sum(tmp_path: Path):
    errors = refusal(saved(still(width=22, metadata=METADATA), tmp_path))

    assert "is 21, and the input obs takes 22" in errors["observation"][0]


def test_an_output_of_another_width_is_refused(tmp_path: Path):
    assert "joints" in refusal(saved(still(joints=3, metadata=METADATA), tmp_path))


def test_lists_that_a_passive_joint_made_shorter_are_refused(tmp_path: Path):
    metadata = said(joint_stiffness="60.000,60.000,60.000", joint_damping="4.000,4.000,4.000")

    assert refusal(saved(still(metadata=metadata), tmp_path)).keys() == {"stiffness", "damping"}


@pytest.mark.parametrize(
    ("key", "value", "field"),
    [
        ("joint_damping", "-0.000,-0.000,-0.000,-0.000", "damping.0"),
        ("joint_stiffness", "nan,1.0,1.0,1.0", "joint_stiffness"),
        ("joint_stiffness", "1_0,1.0,1.0,1.0", "joint_stiffness"),
        ("joint_names", "left_hip,,right_hip,right_knee", "joint_names"),
        ("joint_names", "", "joint_names"),
        ("observation_names", "base_ang_vel,height_scan", "observation.1.term"),
        ("observation_terms_scale", "1.0,1.0", "observation_terms_scale"),
    ],
)
def test_metadata_that_cannot_be_meant_is_refused(tmp_path: Path, key: str, value: str, field: str):
    assert field in refusal(saved(still(metadata=said(**{key: value})), tmp_path))


def test_several_inputs_need_a_sidecar_that_shares_them_out():
    errors = refusal(cases.path("onnx/launcher_beyondmimic.onnx"))

    assert "obs, time_step" in errors["input"][0]


# What the file itself must be.


def shell(folder: Path) -> Path:
    """A policy whose weights lie beside it."""
    model = linear(np.arange(WIDTH * 4, dtype=np.float32).reshape(4, WIDTH), np.zeros(4), metadata=METADATA)
    onnx.save(
        model,
        folder / "policy.onnx",
        save_as_external_data=True,
        all_tensors_to_one_file=True,
        location="policy.onnx.data",
        size_threshold=0,
    )
    return folder / "policy.onnx"


def test_weights_beside_the_file_are_refused_naming_the_command_that_folds_them_in(tmp_path: Path):
    assert "trial-driver pack policy.onnx" in refusal(shell(tmp_path))["file"][0]


def test_packed_weights_are_the_same_weights(tmp_path: Path):
    pack(shell(tmp_path), tmp_path / "packed.onnx")

    assert read_contract(tmp_path / "packed.onnx", sidecar=SIDECAR)
    packed = onnx.load(tmp_path / "packed.onnx", load_external_data=False)
    weights = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in packed.graph.initializer}
    assert np.array_equal(weights["weight"].T.ravel(), np.arange(WIDTH * 4))


def test_packing_what_is_one_file_already_changes_nothing_that_counts(tmp_path: Path):
    path = saved(still(metadata=METADATA), tmp_path)

    pack(path, tmp_path / "packed.onnx")

    assert read_contract(tmp_path / "packed.onnx", sidecar=SIDECAR) == read_contract(path, sidecar=SIDECAR)


@pytest.mark.parametrize("location", ["../secret", "/etc/hostname", "sub/../../secret", "nowhere"])
def test_weights_from_elsewhere_are_never_folded_in(tmp_path: Path, location: str):
    (tmp_path / "secret").write_bytes(bytes(1000))
    (tmp_path / "in").mkdir()
    model = onnx.load(shell(tmp_path), load_external_data=False)
    for tensor in model.graph.initializer:
        for entry in tensor.external_data:
            entry.value = location if entry.key == "location" else entry.value
    path = saved(model, tmp_path / "in")

    with pytest.raises(BadContract):
        pack(path, tmp_path / "packed.onnx")

    assert not (tmp_path / "packed.onnx").exists()


def test_a_link_to_weights_elsewhere_is_not_followed(tmp_path: Path):
    path = shell(tmp_path)
    (tmp_path / "policy.onnx.data").rename(tmp_path / "elsewhere")
    (tmp_path / "policy.onnx.data").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(BadContract):
        pack(path, tmp_path / "packed.onnx")


def test_half_of_the_weights_are_not_folded_in(tmp_path: Path):
    path = shell(tmp_path)
    data = tmp_path / "policy.onnx.data"
    data.write_bytes(data.read_bytes()[:100])

    with pytest.raises(BadContract):
        pack(path, tmp_path / "packed.onnx")


def looping(folder: Path) -> Path:
    """A few bytes that turn 2^62 times."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["going"], ["go_on"]), helper.make_node("Identity", ["x"], ["y"])],
        "body",
        [
            helper.make_tensor_value_info("turn", TensorProto.INT64, []),
            helper.make_tensor_value_info("going", TensorProto.BOOL, []),
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4]),
        ],
        [
            helper.make_tensor_value_info("go_on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4]),
        ],
    )
    main = helper.make_graph(
        [helper.make_node("Loop", ["turns", "", "obs"], ["actions"], body=body)],
        "policy",
        [helper.make_tensor_value_info("obs", TensorProto.FLOAT, [1, 4])],
        [helper.make_tensor_value_info("actions", TensorProto.FLOAT, [1, 4])],
        [onnx.numpy_helper.from_array(np.array(2**62), "turns")],
    )
    return saved(helper.make_model(main, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), folder)


def test_loops_are_refused(tmp_path: Path):
    assert "loops" in refusal(looping(tmp_path))["file"][0]


def test_operators_of_unknown_domains_are_refused(tmp_path: Path):
    model = still(metadata=METADATA)
    model.graph.node[0].domain = "com.example"

    assert "com.example" in refusal(saved(model, tmp_path))["file"][0]


def test_a_file_from_the_future_is_refused(tmp_path: Path):
    model = still(metadata=METADATA)
    model.ir_version = onnx.IR_VERSION + 1

    assert "IR version" in refusal(saved(model, tmp_path))["file"][0]


@pytest.mark.parametrize(
    "content", [b"", b"version https://git-lfs.github.com/spec/v1\n", b"\x08\xff\xff", bytes(100)]
)
def test_what_is_no_model_is_refused_in_words(tmp_path: Path, content: bytes):
    path = tmp_path / "policy.onnx"
    path.write_bytes(content)

    assert refusal(path).keys() == {"file"}


def test_a_file_that_is_not_there_is_refused_in_words(tmp_path: Path):
    assert refusal(tmp_path / "policy.onnx").keys() == {"file"}


def test_a_file_over_the_cap_is_not_even_read(tmp_path: Path):
    path = tmp_path / "policy.onnx"
    with path.open("wb") as file:
        file.truncate(graph.MAX_BYTES + 1)

    assert "at most" in refusal(path)["file"][0]


def test_an_input_of_no_fixed_width_is_refused(tmp_path: Path):
    model = still(metadata=METADATA)
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "width"

    assert "fixed width" in refusal(saved(model, tmp_path))["file"][0]


def test_an_input_of_whole_numbers_is_refused(tmp_path: Path):
    model = still(metadata=METADATA)
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.INT64

    assert "32-bit floats" in refusal(saved(model, tmp_path))["file"][0]


def test_too_much_metadata_is_refused(tmp_path: Path):
    many = [*METADATA.items(), *((f"key{number}", "") for number in range(graph.MAX_METADATA))]

    assert "metadata" in refusal(saved(still(metadata=many), tmp_path))["file"][0]


# Sidecars.


def test_a_sidecar_can_be_toml_or_json():
    assert parse_sidecar(b"[contract]\nrate_hz = 50\n", name="walk.toml") == {"contract": {"rate_hz": 50}}
    assert parse_sidecar(b'{"rate_hz": 50}', name="walk.json") == {"rate_hz": 50}


@pytest.mark.parametrize(
    ("raw", "name"), [(b"rate_hz = ", "a.toml"), (b"\xff", "a.toml"), (b'{"a": 1, "a": 2}', "a.json")]
)
def test_a_sidecar_that_cannot_be_read_is_refused_in_words(raw: bytes, name: str):
    with pytest.raises(BadContract):
        parse_sidecar(raw, name=name)


# Real exports.


def test_a_real_policy_without_weights_in_it_is_packed_and_read(tmp_path: Path):
    source = cases.path("onnx/unitree_rl_mjlab_velocity") / "policy.onnx"
    sidecar = parse_sidecar(Path("tests/driver/g1/mjlab.contract.toml").read_bytes(), name="g1.toml")

    assert "trial-driver pack" in refusal(source, sidecar)["file"][0]
    pack(source, tmp_path / "packed.onnx")

    assert len(read_contract(tmp_path / "packed.onnx", sidecar=sidecar)["joints"]) == 29


def test_a_real_policy_with_history_is_read_with_its_sidecar():
    path = cases.path("onnx/unitree_rl_lab_g1_velocity.onnx")
    sidecar = parse_sidecar(Path("tests/driver/g1/lab.contract.toml").read_bytes(), name="g1.toml")

    assert read_contract(path, sidecar=sidecar)["history"] == {"length": 5, "order": "term"}
