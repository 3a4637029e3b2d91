"""
Trains Stilt's policy by evolution strategies, on as many cores as there are processes:

    python -m driver.bodies.demo.train --out checkpoints --run mine --tied --steps 60

Each step tries pairs of opposite changes on the same episodes and follows what they show. Tied weights march
after some fifty steps; free ones take longer and limp. `--latency 0` makes policies that are perfect in their
own simulation and may fall on a body with one tick of latency.
"""

import argparse
import multiprocessing
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy: small products gain nothing from threads

import numpy as np

from driver.bodies.base import Array
from driver.bodies.choose import STILT
from driver.bodies.demo.episode import reward_of
from driver.bodies.demo.weights import count, save, weights
from driver.bodies.options import Options

PAIRS = 16
SIGMA = 0.04
RATE, DECAY = 0.015, 0.002
SLOWER = ((240, 0.5), (340, 0.25))  # from this step on, this share of the rate

Rewards = tuple[float, float]


@dataclass(frozen=True)
class Trial:
    """One pair: the same episode with the change and with its opposite."""

    centre: Array
    change: Array
    tied: bool
    latency: int
    seed: int


@dataclass
class Adam:
    size: int
    steps: int = 0
    mean: Array = field(init=False)
    square: Array = field(init=False)

    def __post_init__(self) -> None:
        self.mean, self.square = np.zeros(self.size), np.zeros(self.size)

    def step(self, gradient: Array, rate: float) -> Array:
        self.steps += 1
        self.mean = 0.9 * self.mean + 0.1 * gradient
        self.square = 0.99 * self.square + 0.01 * gradient**2
        mean, square = self.mean / (1 - 0.9**self.steps), self.square / (1 - 0.99**self.steps)
        moved: Array = rate * mean / (np.sqrt(square) + 1e-8)
        return moved


def tried(trial: Trial) -> Rewards:
    rng = np.random.default_rng(trial.seed)
    options = Options(
        model=STILT, noise=1, spread=1, pushes=1, latency_ticks=int(rng.integers(0, trial.latency + 1))
    )
    up, down = (
        reward_of(
            weights(trial.centre + sign * SIGMA * trial.change, tied=trial.tied),
            options=options,
            seed=trial.seed,
        )
        for sign in (1, -1)
    )
    return up, down


def trained(
    *,
    steps: int,
    tied: bool,
    latency: int,
    seed: int,
    run_all: Callable[[Sequence[Trial]], Iterable[Rewards]],
) -> Iterator[tuple[int, Array, float]]:
    """Step by step: its number, the free weights, and the mean reward of what was tried."""
    rng = np.random.default_rng(seed)
    free, adam = np.zeros(count(tied=tied)), Adam(count(tied=tied))
    for step in range(1, steps + 1):
        changes = rng.standard_normal((PAIRS, len(free)))
        seeds = rng.integers(2**31, size=PAIRS)
        trials = [
            Trial(free, change, tied, latency, int(one)) for change, one in zip(changes, seeds, strict=True)
        ]
        rewards = np.array(list(run_all(trials)))
        shown = (rewards[:, 0] - rewards[:, 1]) / (rewards.std() + 1e-8)
        gradient = shown @ changes / PAIRS - DECAY * free
        free = free + adam.step(gradient, _rate(step))
        yield step, free, float(rewards.mean())


def _rate(step: int) -> float:
    return RATE * min([share for begins, share in SLOWER if step >= begins], default=1.0)


@contextmanager
def _workers(processes: int) -> Iterator[Callable[[Sequence[Trial]], Iterable[Rewards]]]:
    if processes == 1:
        yield lambda trials: map(tried, trials)
        return
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        yield lambda trials: pool.map(tried, trials, chunksize=1)


def main(argv: Sequence[str] | None = None) -> None:
    args = _arguments().parse_args(argv)
    args.out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with _workers(args.processes) as run_all:
        steps = trained(
            steps=args.steps, tied=args.tied, latency=args.latency, seed=args.seed, run_all=run_all
        )
        for step, free, reward in steps:
            print(f"step {step:4d}  reward {reward:6.3f}  {time.monotonic() - began:6.1f} s", flush=True)
            if step % args.every == 0 or step == args.steps:
                path = args.out / f"{args.run}_step_{step}.onnx"
                save(weights(free, tied=args.tied), path, run=args.run)


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Train Stilt's policy by evolution strategies.")
    parser.add_argument("--out", type=Path, default=Path("checkpoints"), help="where the checkpoints go")
    parser.add_argument("--run", default="mine", help="the run's name, the first part of each file's")
    parser.add_argument("--steps", type=int, default=276)
    parser.add_argument(
        "--every", type=int, default=25, metavar="STEPS", help="a checkpoint each so many steps"
    )
    parser.add_argument("--tied", action="store_true", help="the right side mirrors the left")
    parser.add_argument("--latency", type=int, default=2, metavar="TICKS", help="most ticks of latency met")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=1)
    return parser


if __name__ == "__main__":
    main()
