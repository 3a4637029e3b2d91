import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.contract.document import ALIASES, BadContract, check_contract, contract_name, document_of

WALKER: dict[str, Any] = {
    "robot": "walker",
    "rate_hz": 50,
    "joints": ["left_knee", "right_knee"],
    "default_joint_pos": [0.5, 0.5],
    "action_scale": 0.25,
    "stiffness": [40.0, 40.0],
    "damping": 2.0,
    "observation": [{"term": "base_ang_vel", "scale": 0.2}, {"term": "command"}, {"term": "joint_pos_rel"}],
}


def walker(**changes: Any) -> dict[str, Any]:
    return copy.deepcopy(WALKER) | changes


def refusal(document: dict[str, Any]) -> dict[str, list[str]]:
    with pytest.raises(BadContract) as refused:
        check_contract(document)
    return refused.value.errors


def test_a_contract_says_how_wide_its_input_is():
    assert check_contract(walker()).width("obs") == 3 + 3 + 2


def test_a_history_makes_the_input_as_many_times_wider():
    contract = check_contract(walker(history={"length": 5, "order": "term"}))

    assert contract.width("obs") == 5 * 8


def test_one_number_stands_for_every_joint():
    assert check_contract(walker()).action_scale == (0.25, 0.25)
    assert check_contract(walker()).damping == (2.0, 2.0)


def test_names_met_in_exports_are_understood():
    contract = check_contract(
        walker(observation=[{"term": "gyro"}, {"term": "twist"}, {"term": "joint_pos"}])
    )

    assert [term.name for term in contract.observation] == ["base_ang_vel", "command", "joint_pos_rel"]


def test_several_inputs_share_the_terms_out():
    contract = check_contract(walker(input={"body": ["base_ang_vel", "joint_pos_rel"], "ask": ["command"]}))

    assert (contract.width("body"), contract.width("ask")) == (5, 3)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"stifness": [40, 40]}, "stifness"),
        ({"robot": "Walker 1"}, "robot"),
        ({"rate_hz": 0}, "rate_hz"),
        ({"rate_hz": True}, "rate_hz"),
        ({"rate_hz": "50"}, "rate_hz"),
        ({"rate_hz": float("nan")}, "rate_hz"),
        ({"rate_hz": 10**400}, "rate_hz"),
        ({"joints": []}, "joints"),
        ({"joints": ["left_knee", "left_knee"]}, "joints"),
        ({"default_joint_pos": [0.5]}, "default_joint_pos"),
        ({"default_joint_pos": [0.5, float("inf")]}, "default_joint_pos.1"),
        ({"action_scale": [0.25, 0.0]}, "action_scale.1"),
        ({"action_scale": [0.25, 0.25, 0.25]}, "action_scale"),
        ({"stiffness": [40.0, 0.0]}, "stiffness.1"),
        ({"stiffness": [40.0, float("nan")]}, "stiffness.1"),
        ({"damping": [2.0, -0.0]}, "damping.1"),
        ({"observation": []}, "observation"),
        ({"observation": [{"term": "height_scan"}]}, "observation.0.term"),
        ({"observation": [{"term": "gyro"}, {"term": "base_ang_vel"}]}, "observation"),
        ({"observation": [{"term": "joint_vel", "scale": [1.0, 1.0, 1.0]}]}, "observation.0.scale"),
        ({"observation": [{"term": "joint_vel", "names": ["vx"]}]}, "observation.0.names"),
        ({"observation": [{"term": "command", "names": ["height"]}]}, "observation.0.names.0"),
        ({"history": {"length": 5}}, "history.order"),
        ({"history": {"length": 2.5, "order": "term"}}, "history.length"),
        ({"history": {"length": 5, "order": "newest"}}, "history.order"),
        ({"input": {"obs": ["base_ang_vel"]}}, "input"),
        ({"action_clip": -1}, "action_clip"),
        ({"phase": {"frequency_hz": 1.6, "hold_below": 0.0}}, "phase"),
    ],
)
def test_a_wrong_field_is_refused_by_name(change: dict[str, Any], field: str):
    assert field in refusal(walker(**change))


@pytest.mark.parametrize(
    "field", ["robot", "rate_hz", "joints", "default_joint_pos", "action_scale", "observation"]
)
def test_a_missing_field_is_refused_by_name(field: str):
    document = walker()
    del document[field]

    assert refusal(document)[field] == ["is missing"]


def test_stiffness_without_damping_is_refused():
    document = walker()
    del document["damping"]

    assert "damping" in refusal(document)


def test_a_contract_without_gains_leaves_them_to_the_box():
    document = walker()
    del document["stiffness"], document["damping"]

    assert check_contract(document).stiffness is None


def test_gait_terms_need_a_phase_and_the_commands_vx():
    gait = [{"term": "command"}, {"term": "gait_phase"}]
    phase = {"frequency_hz": 1.6, "hold_below": 0.02}

    assert "phase" in refusal(walker(observation=gait))
    assert "phase" in refusal(walker(observation=gait[1:], phase=phase))
    assert "phase.per" in refusal(walker(observation=[*gait, {"term": "gait_phase_command"}], phase=phase))
    assert check_contract(walker(observation=gait, phase=phase)).phase is not None


def test_all_faults_are_said_at_once():
    errors = refusal(walker(rate_hz=0, joints=[]))

    assert {"rate_hz", "joints"} <= errors.keys()


def test_the_name_is_the_same_however_the_contract_was_spelt():
    said_briefly = document_of(check_contract(walker()))
    said_fully = document_of(
        check_contract(walker(action_scale=[0.25, 0.25], damping=[2.0, 2], history={"length": 1}))
    )

    assert contract_name(said_briefly) == contract_name(said_fully)
    assert contract_name(said_briefly).startswith("walker/")
    assert len(contract_name(said_briefly)) == len("walker/") + 12


def test_another_gain_is_another_name():
    other = document_of(check_contract(walker(stiffness=[40.0, 40.001])))

    assert contract_name(other) != contract_name(document_of(check_contract(walker())))


def test_what_was_written_reads_back_the_same():
    document = document_of(check_contract(walker()))

    assert document_of(check_contract(document)) == document


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.floats()
        | st.integers()
        | st.text(max_size=8)
        | st.sampled_from(sorted(ALIASES)),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted(WALKER)), inner, max_size=4)
        ),
        max_leaves=12,
    )
)
def test_a_document_of_anything_is_refused_in_words_or_read(value: Any):
    for field in WALKER:
        try:
            read = check_contract(walker(**{field: value}))
        except BadContract:
            continue
        assert document_of(check_contract(document_of(read))) == document_of(read)
