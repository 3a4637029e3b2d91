import copy

import pytest

from driver.wire.robot import Pair
from driver.wire.sheet import BadSheet, check_sheet, sheet_digest
from trials.rules.drafting import BadChange, Subject, draft_sheet, patch_sheet

PAIRS = (Pair(name="knee", left="left_knee_joint", right="right_knee_joint", mirror=1),)
CONDITIONS = {"sim": "mujoco 4.0.0", "terrain": "flat", "friction": 1.0, "seeds": 16}


def subject(role="candidate", position=2):
    return Subject(
        trial="trl_01",
        session="ses_01",
        position=position,
        role=role,
        checkpoint="ckp_01",
        run="walk-7",
        step=700,
        onnx_sha256="ab" * 32,
        contract="stilt/0123456789ab",
    )


def gate(key, metric, **more):
    return {"key": key, "metric": metric, "op": "<=", "threshold": 9.0, "conditions": CONDITIONS, **more}


def draft(role="candidate", **facts):
    return draft_sheet(subject(role), **{"pairs": PAIRS, **facts})


def criteria_of(sheet):
    return {criterion["id"]: criterion for criterion in sheet["criteria"]}


def test_a_draft_is_a_sheet_of_the_contract():
    check_sheet(draft())
    check_sheet(draft("control"))


def test_three_stages_are_drafted_and_the_floor_is_judged():
    sheet = draft()

    assert [
        (stage["name"], stage["duration_s"], stage["judged"], stage["free_standing"])
        for stage in sheet["stages"]
    ] == [("hang", 4.0, False, False), ("floor", 10.0, True, True), ("teleop", None, False, True)]
    assert sheet["judging"]["stage"] == "floor"


def test_the_hang_ends_a_trial_whose_joints_are_in_a_wrong_order():
    assert draft()["stages"][0]["gate"] == [{"metric": "asym_max_deg", "op": "<=", "threshold": 10.0}]


def test_what_a_robot_without_pairs_cannot_measure_is_not_drafted():
    sheet = draft(pairs=(), baseline={"tilt_mean_deg": 1.0, "asym_max_deg": None})

    assert "gate" not in sheet["stages"][0]
    assert list(criteria_of(sheet)) == ["tilt-vs-control", "tilt-vs-baseline", "no-falls"]


def test_the_abort_rules_of_the_contract_are_drafted():
    assert [
        (rule["metric"], rule["op"], rule["value"], rule["stages"]) for rule in draft()["abort_rules"]
    ] == [
        ("tilt_deg", ">", 45.0, ["floor", "teleop"]),
        ("state_age_ms", ">", 100.0, ["hang", "floor", "teleop"]),
        ("loop_gap_ms", ">", 100.0, ["hang", "floor", "teleop"]),
        ("temp_c", ">", 80.0, ["hang", "floor", "teleop"]),
    ]


def test_the_pairs_are_judged_by_what_stands_in_the_sheet():
    assert draft()["judging"]["pairs"] == [
        {"name": "knee", "left": "left_knee_joint", "right": "right_knee_joint", "mirror": 1}
    ]


def test_a_candidate_is_held_against_the_control():
    found = criteria_of(draft())

    assert found["tilt-vs-control"] == {
        "id": "tilt-vs-control",
        "metric": "tilt_mean_deg",
        "op": "<=control",
    }
    assert found["asym-vs-control"]["metric"] == "asym_max_deg"
    assert found["no-falls"] == {"id": "no-falls", "metric": "falls", "op": "==", "threshold": 0}


def test_a_control_is_not_held_against_itself():
    sheet = draft("control", baseline={"tilt_mean_deg": 1.0})

    assert list(criteria_of(sheet)) == ["no-falls"]


def test_a_promoted_policys_numbers_become_thresholds():
    found = criteria_of(draft(baseline={"tilt_mean_deg": 1.18, "asym_max_deg": 2.5}))

    assert found["tilt-vs-baseline"] == {
        "id": "tilt-vs-baseline",
        "metric": "tilt_mean_deg",
        "op": "<=",
        "threshold": 1.18,
    }
    assert found["asym-vs-baseline"]["threshold"] == 2.5
    assert "tilt-vs-control" in found


def test_a_number_the_baseline_lacks_is_no_threshold():
    found = criteria_of(draft(baseline={"tilt_mean_deg": None, "asym_max_deg": float("nan")}))

    assert list(found) == ["tilt-vs-control", "asym-vs-control", "no-falls"]


def test_every_locked_gate_is_a_prediction_with_its_conditions():
    gates = [gate("tilt", "tilt_mean_deg"), gate("speed", "forward_speed"), gate("asym", "asym_max_deg")]

    sheet = draft(gates=gates, measured={"tilt": 1.2, "speed": 0.15, "asym": None})

    assert [(p["gate"], p["metric"], p["sim_value"]) for p in sheet["predictions"]] == [
        ("tilt", "tilt_mean_deg", 1.2),
        ("speed", "forward_speed", 0.15),
        ("asym", "asym_max_deg", None),
    ]
    assert sheet["predictions"][0]["conditions"] == CONDITIONS


def test_a_checkpoint_that_no_round_measured_has_no_predictions():
    sheet = draft(gates=[gate("tilt", "tilt_mean_deg")], measured=None)

    assert sheet["predictions"] == []
    assert "tilt-as-sim" not in criteria_of(sheet)


@pytest.mark.parametrize(
    ("metric", "sim", "tolerance"),
    [
        ("tilt_mean_deg", 1.2, 0.5),
        ("tilt_mean_deg", 2.5, 0.5),
        ("tilt_max_deg", 4.0, 0.8),
        ("asym_max_deg", 0.0, 0.5),
        ("loop_hz", 50.0, 10.0),
        ("falls", 0, 0.0),
    ],
)
def test_a_measurable_gate_is_to_be_as_in_simulation_within_a_fifth_and_at_least_half_a_degree(
    metric, sim, tolerance
):
    found = criteria_of(draft(gates=[gate("g", metric)], measured={"g": sim}))["g-as-sim"]

    assert found == {
        "id": "g-as-sim",
        "metric": metric,
        "op": "as_in_sim",
        "sim_value": sim,
        "tolerance": tolerance,
    }


def test_a_tracking_gate_keeps_its_joint_and_two_hundredths_of_a_radian():
    gates = [gate("knee", "tracking_error_rad", joint="knee"), gate("any", "tracking_error_rad")]

    found = criteria_of(draft(gates=gates, measured={"knee": 0.05, "any": 0.05}))

    assert (found["knee-as-sim"]["joint"], found["knee-as-sim"]["tolerance"]) == ("knee", 0.02)
    assert "any-as-sim" not in found  # a sheet's criterion needs its joint; the gate itself is still judged


@pytest.mark.parametrize("sim", [None, float("nan")])
def test_a_gate_that_simulation_did_not_measure_makes_no_criterion(sim):
    assert "g-as-sim" not in criteria_of(draft(gates=[gate("g", "falls")], measured={"g": sim}))


def test_a_gate_that_no_log_can_measure_makes_no_criterion():
    assert "g-as-sim" not in criteria_of(draft(gates=[gate("g", "forward_speed")], measured={"g": 0.1}))


def test_the_most_gates_a_round_may_have_fit_a_sheet():
    gates = [gate(f"g{number}", "tilt_mean_deg") for number in range(32)]

    draft(
        gates=gates,
        measured={each["key"]: 1.0 for each in gates},
        baseline={"tilt_mean_deg": 1.0, "asym_max_deg": 1.0},
    )


def test_two_drafts_share_nothing_that_a_change_to_one_could_reach():
    first, second = draft(), draft()
    first["environment"]["floor"] = "ice"
    first["stages"][0]["values"]["command"][0] = 1

    assert second["environment"]["floor"] == ""
    assert second["stages"][0]["values"]["command"] == [0, 0, 0] == first["stages"][1]["values"]["command"]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"kd_scale": 1},
        {"kd_scale": 1.0, "gain_profile": "policy"},
        {"environment": {}},
        {"environment": {"ambient_c": None}},
        {"environment": None},
    ],
)
def test_saving_without_a_change_changes_no_digest(changes):
    sheet = draft()

    assert sheet_digest(patch_sheet(sheet, changes)) == sheet_digest(sheet)


@pytest.mark.parametrize("part", ["stages", "abort_rules", "criteria"])
def test_sending_a_list_as_it_is_changes_no_digest(part):
    sheet = draft()

    assert sheet_digest(patch_sheet(sheet, {part: copy.deepcopy(sheet[part])})) == sheet_digest(sheet)


def test_the_whole_sheet_may_be_sent_back_as_it_is():
    sheet = draft()

    assert patch_sheet(sheet, copy.deepcopy(sheet)) == sheet


def test_a_change_leaves_the_rest_and_the_sheet_it_was_made_from():
    sheet = draft()
    before = copy.deepcopy(sheet)

    changed = patch_sheet(sheet, {"kd_scale": 1.5, "gain_profile": "soft"})

    assert changed == {**before, "kd_scale": 1.5, "gain_profile": "soft"}
    assert sheet == before


def test_null_clears_what_may_be_empty():
    changed = patch_sheet(draft(), {"criteria": None, "abort_rules": None})

    assert (changed["criteria"], changed["abort_rules"]) == ([], [])


@pytest.mark.parametrize("key", ["stages", "gain_profile", "kd_scale", "power_scale"])
def test_null_clears_nothing_that_is_needed(key):
    with pytest.raises(BadChange) as refused:
        patch_sheet(draft(), {key: None})

    assert refused.value.errors == {key: ["cannot be cleared"]}


def test_the_environment_changes_key_by_key():
    sheet = patch_sheet(draft(), {"environment": {"floor": "lab rubber", "ambient_c": 21.5}})

    changed = patch_sheet(sheet, {"environment": {"ambient_c": None, "notes": "cold"}})

    assert changed["environment"] == {
        "floor": "lab rubber",
        "ambient_c": None,
        "battery_min_v": None,
        "notes": "cold",
    }
    assert patch_sheet(changed, {"environment": {"floor": None}})["environment"]["floor"] == ""


@pytest.mark.parametrize(
    "changes",
    [
        {"predictions": [{"gate": "x", "metric": "x", "sim_value": 0, "conditions": {}}]},
        {"checkpoint": {"id": "ckp_02"}},
        {"position": 3},
        {"position": None},
        {"role": "control"},
        {"judging": {"formulas": 1, "stage": "floor", "pairs": []}},
        {"trial_id": "trl_02"},
        {"version": True},
        {"locked_at": None},
        {"digest": "00"},
        {"kd_scal": 1.0},
    ],
)
def test_what_never_changes_is_refused_and_says_what_can(changes):
    with pytest.raises(BadChange) as refused:
        patch_sheet(draft(), changes)

    (key,) = changes
    assert "kd_scale" in refused.value.errors[key][0]


def test_every_refused_key_is_named():
    with pytest.raises(BadChange) as refused:
        patch_sheet(draft(), {"role": "control", "position": 9, "kd_scale": 2.0})

    assert set(refused.value.errors) == {"role", "position"}


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"kd_scale": "1"}, "kd_scale"),
        ({"kd_scale": 0}, "kd_scale"),
        ({"gain_profile": "rm -rf /"}, "gain_profile"),
        ({"environment": 3}, "environment"),
        ({"environment": {"flor": "x"}}, "environment.flor"),
        ({"stages": []}, "stages"),
        ({"stages": "hang"}, "stages"),
        ({"stages": [3]}, "stages.0"),
        ({"criteria": [{"id": "x", "metric": "falls", "op": "=="}]}, "criteria.0.threshold"),
    ],
)
def test_a_change_that_makes_no_sheet_is_refused_by_its_path(changes, path):
    with pytest.raises(BadSheet) as refused:
        patch_sheet(draft(), changes)

    assert list(refused.value.errors) == [path]


def stages_of(sheet, *names, **flags):
    known = {stage["name"]: stage for stage in sheet["stages"]}
    return [{**known[name], **flags.get(name, {})} for name in names]


def test_judging_follows_the_stage_that_is_judged():
    sheet = draft()
    stages = stages_of(sheet, "hang", "floor", "teleop", floor={"judged": False}, teleop={"judged": True})

    assert patch_sheet(sheet, {"stages": stages})["judging"]["stage"] == "teleop"


@pytest.mark.parametrize("judged", [(), ("floor", "teleop")])
def test_exactly_one_stage_is_judged(judged):
    sheet = draft()
    flags = {name: {"judged": name in judged} for name in ("hang", "floor", "teleop")}

    with pytest.raises(BadSheet) as refused:
        patch_sheet(sheet, {"stages": stages_of(sheet, "hang", "floor", "teleop", **flags)})

    assert list(refused.value.errors) == ["stages"]


def test_abort_rules_for_every_stage_or_every_free_one_stay_that_when_stages_change():
    sheet = draft()
    walk = {**sheet["stages"][2], "name": "walk"}

    changed = patch_sheet(sheet, {"stages": [*stages_of(sheet, "hang", "floor"), walk]})

    assert [rule["stages"] for rule in changed["abort_rules"]] == [
        ["floor", "walk"],
        ["hang", "floor", "walk"],
        ["hang", "floor", "walk"],
        ["hang", "floor", "walk"],
    ]


def test_abort_rules_that_are_sent_with_the_stages_are_taken_as_they_are():
    sheet = draft()
    rules = sheet["abort_rules"][1:2]
    rules = [{**rules[0], "stages": ["hang", "floor"]}]

    changed = patch_sheet(sheet, {"stages": stages_of(sheet, "hang", "floor"), "abort_rules": rules})

    assert changed["abort_rules"] == rules


def test_with_no_stage_standing_free_the_tilt_rule_watches_them_all():
    sheet = draft()

    changed = patch_sheet(sheet, {"stages": stages_of(sheet, "hang", hang={"judged": True})})

    assert [rule["stages"] for rule in changed["abort_rules"]] == [["hang"]] * 4


def test_an_abort_rule_for_a_stage_by_name_is_never_dropped_in_silence():
    sheet = draft()
    rule = {"metric": "battery_v", "op": "<", "value": 20.0, "for_s": 1.0, "stages": ["teleop"]}
    sheet = patch_sheet(sheet, {"abort_rules": [*sheet["abort_rules"], rule]})

    with pytest.raises(BadSheet) as refused:
        patch_sheet(sheet, {"stages": stages_of(sheet, "hang", "floor")})

    assert list(refused.value.errors) == ["abort_rules.4.stages"]
