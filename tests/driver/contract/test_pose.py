import math

import pytest

from driver.contract.pose import default_outside
from tests.driver.policy.puppet import contract


@pytest.mark.parametrize("span", [(-0.3, 0.6), (-0.3 + 5e-7, 0.6), (-math.inf, 0.0), (-1.0, math.inf)])
def test_a_default_pose_may_touch_its_limits(span: tuple[float, float]):
    assert default_outside(contract(), {"left_hip": span}) is None


def test_a_joint_without_limits_may_be_anywhere():
    assert default_outside(contract(), {}) is None
    assert default_outside(contract(), {"head": (1.0, 2.0)}) is None


@pytest.mark.parametrize("span", [(-0.2, 1.0), (-1.0, -0.4)])
def test_a_default_pose_outside_the_limits_is_said_by_joint(span: tuple[float, float]):
    said = default_outside(contract(), {"left_hip": span})

    assert said == (
        f"the default pose has left_hip at -0.300 rad, outside its limits {span[0]:.3f} to {span[1]:.3f}"
    )
