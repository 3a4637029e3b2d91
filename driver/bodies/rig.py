"""A MuJoCo model made ready to be driven: its joints by name, its base on a gantry, a floor under it."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import NDArray

from driver.bodies.base import Array, BodyError

GANTRY = "trial_gantry"
FAR = 10.0
_SOFT = (0.02, 1.0)  # seconds and damping ratio of the ropes

# MuJoCo's enumerations compare with the numbers of its arrays in one direction only.
FREE = int(mujoco.mjtJoint.mjJNT_FREE)
ONE_AXIS = (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE))
ON_JOINT = int(mujoco.mjtTrn.mjTRN_JOINT)
FIXED_GAIN = int(mujoco.mjtGain.mjGAIN_FIXED)
AFFINE_BIAS = int(mujoco.mjtBias.mjBIAS_AFFINE)
DIRECT = int(mujoco.mjtDyn.mjDYN_NONE)
GYRO = int(mujoco.mjtSensor.mjSENS_GYRO)

Indices = NDArray[np.intp]


@dataclass(frozen=True, kw_only=True)
class Rig:
    """A model of its own to change, with the places of the driven joints in its arrays."""

    model: mujoco.MjModel
    base: int  # the body on the free joint; 0 where the base is bolted down
    gantry: int  # the equality that holds it; -1 where there is none
    position: Indices
    velocity: Indices
    actuator: Indices
    joint: Indices
    static_geoms: tuple[int, ...]
    moving_geoms: tuple[int, ...]

    def clearance(self, data: mujoco.MjData) -> float:
        """The distance from the robot's lowest part to what stands still, negative when inside it."""
        line = np.zeros(6)
        gaps = [
            mujoco.mj_geomDistance(self.model, data, still, moving, FAR, line)
            for still in self.static_geoms
            for moving in self.moving_geoms
        ]
        return float(min(gaps, default=0.0))


def make_rig(path: Path, joints: Sequence[str], *, hang_from: str | None = None) -> Rig:
    """
    Load a model and find these joints in it.

    :raises BodyError: where it cannot be loaded, or a joint or its position actuator is not there
    """
    if not path.is_file():
        raise BodyError(f"there is no model {path}")
    model = copy.deepcopy(_compiled(path, hang_from, path.stat().st_mtime_ns))
    ids = np.array([_joint(model, name) for name in joints], dtype=np.intp)
    colliding = [
        geom for geom in range(model.ngeom) if model.geom_contype[geom] or model.geom_conaffinity[geom]
    ]
    still = tuple(geom for geom in colliding if model.body_weldid[model.geom_bodyid[geom]] == 0)
    return Rig(
        model=model,
        base=_base(model),
        gantry=mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_EQUALITY, GANTRY),
        position=model.jnt_qposadr[ids].astype(np.intp),
        velocity=model.jnt_dofadr[ids].astype(np.intp),
        actuator=np.array([_actuator(model, int(at)) for at in ids], dtype=np.intp),
        joint=ids,
        static_geoms=still,
        moving_geoms=tuple(geom for geom in colliding if geom not in still),
    )


def imu_in_base(rig: Rig, site: str | None) -> Array:
    """The rotation from the base's frame into the IMU's: that of the named site, of the gyro's, or none."""
    model = rig.model
    found = _named_site(model, site) if site else _gyro_site(model)
    if found < 0:
        return np.eye(3)
    if model.site_bodyid[found] != rig.base:
        raise BodyError(
            f"the IMU's site {model.site(found).name!r} is not on the base; name one there with imu="
        )
    rotation = np.zeros(9)
    mujoco.mju_quat2Mat(rotation, model.site_quat[found])
    return rotation.reshape(3, 3).T


@lru_cache(maxsize=4)
def _compiled(path: Path, hang_from: str | None, _changed_at: int) -> mujoco.MjModel:
    try:
        spec = mujoco.MjSpec.from_file(str(path))
        _add_gantry(spec, hang_from)
        _add_floor(spec)
        _exclude_overlaps(spec, spec.compile())
        model = spec.compile()
    except ValueError as error:
        raise BodyError(f"MuJoCo cannot load {path.name}: {error}") from None
    return model


def _add_gantry(spec: mujoco.MjSpec, hang_from: str | None) -> None:
    """Hold a free robot to the world by something soft, as it hangs in its ropes."""
    free = [body for body in spec.bodies if any(int(joint.type) == FREE for joint in body.joints)]
    if not free:
        return
    held = hang_from or free[0].name
    if spec.body(held) is None:
        raise BodyError(f"the model has no body {held!r} to hang from")
    weld = spec.add_equality(name=GANTRY, type=mujoco.mjtEq.mjEQ_WELD, name1="world", name2=held)
    weld.objtype = mujoco.mjtObj.mjOBJ_BODY
    weld.solref[:] = _SOFT


def _add_floor(spec: mujoco.MjSpec) -> None:
    if not any(geom.contype or geom.conaffinity for geom in spec.worldbody.geoms):
        spec.worldbody.add_geom(name="trial_floor", type=mujoco.mjtGeom.mjGEOM_PLANE, size=[20, 20, 0.1])


def _exclude_overlaps(spec: mujoco.MjSpec, model: mujoco.MjModel) -> None:
    """Parts of the robot that already overlap as the model draws it would only push each other apart."""
    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_forward(model, data)
    for contact in data.contact:
        one, other = (int(model.geom_bodyid[geom]) for geom in contact.geom)
        if contact.dist < 0 and model.body_weldid[one] and model.body_weldid[other]:
            spec.add_exclude(bodyname1=model.body(one).name, bodyname2=model.body(other).name)


def _base(model: mujoco.MjModel) -> int:
    free = [at for at in range(model.njnt) if model.jnt_type[at] == FREE]
    if len(free) > 1:
        raise BodyError("the model has several free bodies; which one is the robot?")
    if free and model.jnt_qposadr[free[0]] != 0:
        raise BodyError("the free joint must be the model's first joint")
    return int(model.jnt_bodyid[free[0]]) if free else 0


def _joint(model: mujoco.MjModel, name: str) -> int:
    found = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, name)
    if found < 0 or model.jnt_type[found] not in ONE_AXIS:
        raise BodyError(f"the model has no joint {name!r}")
    return int(found)


def _actuator(model: mujoco.MjModel, joint: int) -> int:
    """The one position actuator on that joint."""
    found = [
        at
        for at in range(model.nu)
        if model.actuator_trntype[at] == ON_JOINT and model.actuator_trnid[at, 0] == joint
    ]
    name = model.joint(joint).name
    if len(found) != 1:
        raise BodyError(f"the joint {name!r} has {len(found)} actuators; one position actuator is needed")
    at = found[0]
    position = (
        model.actuator_gaintype[at] == FIXED_GAIN
        and model.actuator_biastype[at] == AFFINE_BIAS
        and model.actuator_dyntype[at] == DIRECT
        and model.actuator_gear[at, 0] == 1
    )
    if not position:
        raise BodyError(
            f"the actuator of {name!r} is no plain position actuator (<position joint=…>, gear 1)"
        )
    return at


def _named_site(model: mujoco.MjModel, name: str) -> int:
    found = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_SITE, name)
    if found < 0:
        raise BodyError(f"the model has no site {name!r}")
    return int(found)


def _gyro_site(model: mujoco.MjModel) -> int:
    gyros = [at for at in range(model.nsensor) if model.sensor_type[at] == GYRO]
    return int(model.sensor_objid[gyros[0]]) if gyros else -1
