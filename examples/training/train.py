"""A training job in plain Python that logs what its GPUs do beside its loss.

The model is small on purpose, and runs on the processor: the loop is what is
shown. In a job of yours, everything with `watch` stays and the rest is yours.
"""

import argparse
import json
import math
import random
import time

import claimwatch


def batches(rng, size, pause):
    """Endless batches of points in a square, with whether each is in a circle."""
    while True:
        time.sleep(pause)  # what a slow disk or a remote store would take
        points = [(rng.uniform(-1, 1), rng.uniform(-1, 1)) for _ in range(size)]
        yield [(x, y, 1.0 if x * x + y * y < 0.5 else 0.0) for x, y in points]


class Model:
    """Two inputs, one hidden layer of tanh, one logistic output; plain SGD."""

    def __init__(self, rng, hidden):
        self.inner = [[rng.uniform(-1, 1) for _ in range(3)] for _ in range(hidden)]
        self.outer = [rng.uniform(-1, 1) for _ in range(hidden + 1)]

    def train(self, batch, rate):
        """One step over a batch; the mean cross entropy before it."""
        loss = 0.0
        for x, y, want in batch:
            hidden = [math.tanh(a * x + b * y + c) for a, b, c in self.inner]
            z = sum(w * h for w, h in zip(self.outer, hidden)) + self.outer[-1]
            got = 1 / (1 + math.exp(-max(-30.0, min(30.0, z))))
            loss -= math.log(max(got if want else 1 - got, 1e-12))
            self.learn(x, y, hidden, (got - want) * rate)
        return loss / len(batch)

    def learn(self, x, y, hidden, error):
        for i, h in enumerate(hidden):
            back = error * self.outer[i] * (1 - h * h)
            self.outer[i] -= error * h
            a, b, c = self.inner[i]
            self.inner[i] = [a - back * x, b - back * y, c - back]
        self.outer[-1] -= error


def log(**fields):
    print(json.dumps(fields), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--log-every", type=int, default=200)
    parser.add_argument("--input-pause", type=float, default=0.01, help="seconds that each batch is waited for")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()

    rng = random.Random(options.seed)
    model, loader = Model(rng, hidden=8), batches(rng, size=32, pause=options.input_pause)
    watch = claimwatch.start()
    began = since = time.monotonic()
    for step in range(1, options.steps + 1):
        loss = model.train(next(loader), rate=0.05)
        watch.step()
        if step % options.log_every == 0:
            now = time.monotonic()
            log(step=step, loss=round(loss, 4), steps_per_second=round(options.log_every / (now - since), 1), claim=watch.line())
            since = now
    took = time.monotonic() - began
    log(done=True, steps=options.steps, loss=round(loss, 4), seconds=round(took, 1), claim=watch.close())


if __name__ == "__main__":
    main()
