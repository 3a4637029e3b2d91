"""`--body KIND:…` -> a body."""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import cast

from driver.bodies.base import Body, BodyError
from driver.bodies.options import Options, parse_options

STILT = Path(__file__).parent / "demo" / "stilt.xml"

Factory = Callable[..., Body]


def body_from(text: str, *, seed: int | None = None) -> Body:
    """
    The body that the text names: `mujoco:PATH?…`, `mujoco:stilt?…` for the demo's robot, or
    `python:MODULE:FACTORY?…`, where the factory is called with the text after the `?` and `seed=`.

    :raises BodyError: where there is no such body
    """
    kind, _, rest = text.partition(":")
    if kind == "mujoco":
        return _simulated(text, seed)
    if kind == "python":
        return _imported(rest, seed)
    raise BodyError(f"{text!r} names no body; mujoco:robot.xml or python:module:factory do")


def simulated_options(text: str) -> Options:
    """
    The options of a simulated body.

    :raises BodyError: where the text names another kind
    """
    kind, _, rest = text.partition(":")
    if kind != "mujoco":
        raise BodyError(f"{text!r} is no simulated body; mujoco:robot.xml would be one")
    path, mark, query = rest.partition("?")
    return parse_options(f"{STILT if path == 'stilt' else path}{mark}{query}")


def _simulated(text: str, seed: int | None) -> Body:
    try:
        from driver.bodies.mujoco import MujocoBody
    except ModuleNotFoundError:
        raise BodyError("a simulated body needs MuJoCo: install the driver with its extra `sim`") from None
    return MujocoBody(simulated_options(text), seed=seed)


def _imported(rest: str, seed: int | None) -> Body:
    target, _, query = rest.partition("?")
    module, _, name = target.partition(":")
    try:
        factory = cast("Factory", getattr(importlib.import_module(module), name))
    except (ImportError, AttributeError, ValueError) as error:
        raise BodyError(f"there is no body {target!r}: {error}") from None
    return factory(query, seed=seed)
