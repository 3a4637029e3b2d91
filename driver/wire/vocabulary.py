"""The words that sheet, statements and summary share."""

FORMULAS = 1  # the version of the summary's formulas

METRICS = (
    "tilt_mean_deg",
    "tilt_max_deg",
    "asym_max_deg",
    "falls",
    "tracking_error_rad",
    "loop_hz",
    "temp_max_c",
)

ABORT_METRICS = (
    "tilt_deg",
    "joint_error_rad",
    "joint_vel_rad_s",
    "temp_c",
    "battery_v",
    "loop_gap_ms",
    "action_abs",
    "state_age_ms",
    "command_age_ms",
)

COMPARISONS = ("<=", "<", ">=", ">", "==")
AGAINST_CONTROL = "<=control"
AS_IN_SIM = "as_in_sim"
OPERATORS = (*COMPARISONS, AGAINST_CONTROL, AS_IN_SIM)

ROLES = ("control", "candidate")

STOPPED_BY = (
    "completed",
    "operator",
    "abort_rule",
    "gate",
    "revoked",
    "command_failed",
    "power_loss",
    "link_lost",
    "estop",
    "driver_stopped",
)
STAGE_STATUS = ("done", "aborted", "failed", "not_run")
LOG_STATES = ("uploaded", "missing", "malformed")
EVENT_KINDS = (
    "run_started",
    "stage_started",
    "stage_finished",
    "run_stopped",
    "refused",
    "journal_lost",
    "heartbeat",
)
