"""The pose that a contract's targets are counted from, held against what the joints may do."""

from collections.abc import Mapping

from driver.contract.document import Contract

TOUCH = 1e-6

Span = tuple[float, float]


def default_outside(contract: Contract, joint_limits: Mapping[str, Span]) -> str | None:
    """The first joint whose default position is outside its limits, in words; a joint may have none."""
    for joint, default in zip(contract.joints, contract.default_joint_pos, strict=True):
        low, high = joint_limits.get(joint, (float("-inf"), float("inf")))
        if not low - TOUCH <= default <= high + TOUCH:
            return (
                f"the default pose has {joint} at {default:.3f} rad, "
                f"outside its limits {low:.3f} to {high:.3f}"
            )
    return None
