"""A simulated body: any MuJoCo model with position actuators, faster than real time, with its own clock."""

import time
from collections import deque

import mujoco
import numpy as np

from driver.bodies.base import Array, BodyError, Clock, Plan, State
from driver.bodies.options import Options
from driver.bodies.rig import ON_JOINT, imu_in_base, make_rig

# What `noise=1` means, standard deviations.
GYRO_RAD_S, GRAVITY, JOINT_RAD, JOINT_RAD_S, START_RAD = 0.08, 0.008, 0.004, 0.25, 0.03
# What `spread=1` means: shares of the model's values, and the sizes of misfitted zero points.
STIFFNESS, DAMPING, MASS, FRICTION_DOWN, FRICTION_UP = 0.10, 0.20, 0.10, 0.40, 0.30
CENTRE_M = np.array([0.008, 0.006, 0.008])
ENCODER_RAD, IMU_RAD = 0.012, 0.010
# What `pushes=1` means: a change of velocity, over a time, after a pause.
PUSH_M_S, PUSH_S, PAUSE_S = (0.05, 0.25), 0.1, (2.0, 4.0)

DOWN = np.array([0.0, 0.0, -1.0])


class MujocoBody:
    """Keeps the `Body` protocol. Its clock is the simulation's, which only `sleep_until` moves."""

    simulated = True

    def __init__(self, options: Options, *, seed: int | None = None) -> None:
        self.options = options
        self.clock: Clock = self
        self._run = np.random.default_rng(seed)
        self._individual = np.random.default_rng(seed if options.seed is None else options.seed)
        self._steps = 0
        self._connected = False

    # The clock.

    def now(self) -> float:
        return self._steps * self._timestep if self._connected else 0.0

    def sleep_until(self, moment: float) -> None:
        steps = round((moment - self.now()) / self._timestep)
        if steps <= 0:
            return
        self._push()
        mujoco.mj_step(self._rig.model, self._data, steps)
        self._steps += steps
        if self.options.realtime:
            time.sleep(max(0.0, self._woken + self.now() - time.monotonic()))

    # The body.

    def connect(self, plan: Plan) -> None:
        self._plan = plan
        self._rig = make_rig(self.options.model, plan.joints, hang_from=self.options.hang_from)
        self._timestep = float(self._rig.model.opt.timestep)
        self._check_period(plan.period_s)
        self._count = len(plan.joints)
        self._imu = imu_in_base(self._rig, self.options.imu)
        self._become_an_individual()
        self._data = mujoco.MjData(self._rig.model)
        self._hang_up()
        self._sent: deque[tuple[Array, Array, Array]] = deque()
        self._gains = (np.empty(0), np.empty(0))
        self._woken = time.monotonic()
        self._next_push, self._push_ends = np.inf, 0.0
        self._connected = True

    def joint_limits(self) -> Array:
        model, joint = self._rig.model, self._rig.joint
        limits = np.array(model.jnt_range[joint], dtype=float)
        limits[model.jnt_limited[joint] == 0] = (-np.inf, np.inf)
        return limits

    def read(self) -> State:
        data, rig = self._data, self._rig
        noise = self._run.standard_normal(6 + 2 * self._count) * self.options.noise
        gravity, ang_vel, lin_vel = self._felt()
        gravity = gravity + GRAVITY * noise[:3]
        return State(
            joint_pos=data.qpos[rig.position] + self._zero + JOINT_RAD * noise[6 : 6 + self._count],
            joint_vel=data.qvel[rig.velocity] + JOINT_RAD_S * noise[6 + self._count :],
            ang_vel=ang_vel + GYRO_RAD_S * noise[3:6],
            gravity=gravity / np.sqrt(gravity @ gravity),
            age_s=self._age(),
            lin_vel=lin_vel,
            torque=data.actuator_force[rig.actuator],
        )

    def send(self, targets: Array, stiffness: Array, damping: Array) -> None:
        self._sent.append((targets.copy(), stiffness, damping))
        if len(self._sent) > self.options.latency_ticks + 1:
            self._sent.popleft()
        self._apply(*self._sent[0])

    def let_go(self) -> None:
        """Set a free-standing robot down: upright, at rest, its lowest part on the floor."""
        if not self._plan.free_standing or self._rig.gantry < 0:
            return
        data, rig = self._data, self._rig
        data.eq_active[rig.gantry] = 0
        data.qpos[:7] = self._start
        data.qvel[:] = 0.0
        mujoco.mj_forward(rig.model, data)
        data.qpos[2] -= rig.clearance(data)
        mujoco.mj_forward(rig.model, data)
        self._next_push = self.now() + self._run.uniform(*PAUSE_S)

    def disconnect(self) -> None:
        self._sent = deque()

    @property
    def model(self) -> mujoco.MjModel:
        return self._rig.model

    @property
    def data(self) -> mujoco.MjData:
        """What only a simulation knows: for training, never for a policy."""
        return self._data

    # How it came to be.

    def _check_period(self, period_s: float) -> None:
        steps = period_s / self._timestep
        if steps < 0.999 or abs(steps - round(steps)) > 1e-6:
            model_ms = self._timestep * 1000
            raise BodyError(
                f"a period of {period_s * 1000:g} ms is no multiple of the model's {model_ms:g} ms"
            )

    def _become_an_individual(self) -> None:
        model, base, spread, rng = self._rig.model, self._rig.base, self.options.spread, self._individual

        def factor(share: float, size: int = 1) -> Array:
            return 1.0 + spread * share * rng.uniform(-1, 1, size)

        self._stiffer, self._damper = factor(STIFFNESS, self._count), factor(DAMPING, self._count)
        self._zero = spread * ENCODER_RAD * rng.standard_normal(self._count)
        self._imu = _turned(spread * IMU_RAD * rng.standard_normal(3)) @ self._imu
        heavier = self.options.mass * factor(MASS)[0]
        model.body_mass[base] *= heavier
        model.body_inertia[base] *= heavier
        model.body_ipos[base] += spread * CENTRE_M * rng.uniform(-1, 1, 3)
        self._grip(1.0 + spread * rng.uniform(-FRICTION_DOWN, FRICTION_UP))
        model.actuator_forcerange *= self.options.power
        model.jnt_actfrcrange *= self.options.power
        mujoco.mj_setConst(model, mujoco.MjData(model))

    def _grip(self, factor: float) -> None:
        geoms = [*self._rig.static_geoms, *self._rig.moving_geoms]
        friction = self._rig.model.geom_friction
        if self.options.friction is not None:
            friction[geoms, 0] = self.options.friction
        friction[geoms, 0] *= factor

    def _hang_up(self) -> None:
        """The pose at the start, lifted so that nothing touches the floor, and held there."""
        model, data, rig = self._rig.model, self._data, self._rig
        self._pose()
        data.qpos[rig.position] += self.options.noise * START_RAD * self._run.standard_normal(self._count)
        low, high = self.joint_limits().T
        data.qpos[rig.position] = np.clip(data.qpos[rig.position], low, high)
        self._hold_the_rest()
        if rig.gantry >= 0:
            self._start = np.array(data.qpos[:7])
            data.qpos[2] += self.options.lift * self._start[2]
        mujoco.mj_forward(model, data)
        if rig.gantry >= 0:
            held = model.eq_obj2id[rig.gantry]
            model.eq_data[rig.gantry, :11] = [0, 0, 0, *data.xpos[held], *data.xquat[held], 1]

    def _pose(self) -> None:
        model, name = self._rig.model, self.options.keyframe
        key = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_KEY, name) if name else min(model.nkey, 1) - 1
        if key >= 0:
            mujoco.mj_resetDataKeyframe(model, self._data, key)
        elif name:
            raise BodyError(f"the model has no keyframe {name!r}")

    def _hold_the_rest(self) -> None:
        """Every position actuator keeps the pose of the start until somebody drives it."""
        model, data = self._rig.model, self._data
        for at in range(model.nu):
            if model.actuator_trntype[at] == ON_JOINT:
                data.ctrl[at] = data.qpos[model.jnt_qposadr[model.actuator_trnid[at, 0]]]

    # How it moves.

    def _apply(self, targets: Array, stiffness: Array, damping: Array) -> None:
        motors = self._rig.actuator
        self._data.ctrl[motors] = targets - self._zero
        if self._gains[0] is not stiffness or self._gains[1] is not damping:
            model, power = self._rig.model, self.options.power
            model.actuator_gainprm[motors, 0] = power * self._stiffer * stiffness
            model.actuator_biasprm[motors, 1] = -power * self._stiffer * stiffness
            model.actuator_biasprm[motors, 2] = -power * self._damper * damping
            self._gains = stiffness, damping

    def _push(self) -> None:
        """Shove the base now and then; the force stays for the periods that it lasts."""
        if self.options.pushes == 0:
            return
        now, force = self.now(), self._data.xfrc_applied[self._rig.base]
        if now >= self._push_ends:
            force[:2] = 0.0
        if now >= self._next_push:
            speed, heading = self._run.uniform(*PUSH_M_S), self._run.uniform(0, 2 * np.pi)
            mass = self._rig.model.body_subtreemass[self._rig.base]
            size = self.options.pushes * mass * speed / PUSH_S
            force[:2] = size * np.cos(heading), size * np.sin(heading)
            self._push_ends = now + PUSH_S
            self._next_push = now + self._run.uniform(*PAUSE_S)

    def _felt(self) -> tuple[Array, Array, Array]:
        """Gravity, angular and linear velocity in the IMU's frame."""
        if self._rig.base == 0:
            return self._imu @ DOWN, np.zeros(3), np.zeros(3)
        rotation = np.empty(9)
        mujoco.mju_quat2Mat(rotation, self._data.qpos[3:7])
        to_imu = self._imu @ rotation.reshape(3, 3).T
        velocity = self._data.qvel
        return to_imu @ DOWN, self._imu @ velocity[3:6], to_imu @ velocity[:3]

    def _age(self) -> float:
        silent = self.options.silent_after_s
        return 0.0 if silent is None else max(0.0, self.now() - silent)


def _turned(angles: Array) -> Array:
    """The rotation by a small vector of angles."""
    quaternion, matrix = np.zeros(4), np.zeros(9)
    size = float(np.sqrt(angles @ angles))
    axis = angles / size if size else np.array([0.0, 0.0, 1.0])
    mujoco.mju_axisAngle2Quat(quaternion, axis, size)
    mujoco.mju_quat2Mat(matrix, quaternion)
    return matrix.reshape(3, 3)
