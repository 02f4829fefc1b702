#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""An Elman network in PyTorch, the work that `microprop bench --only elman` does: 26-64-26 with 64 context units, 1,000
sequences of 40 to 60 letters, one update for all of them.

  bench/elman.py THREADS      reads seconds, line by line; answers each with MCPS of training for so long

A loop of steps; sequences are sorted by length and batched, so that a step computes only those that still run.  The
hidden units of the last step are detached: no error goes back through the copy."""
import random, sys, time
import torch

INPUTS, HIDDEN, SEQUENCES = 26, 64, 1000
LINKS = (INPUTS + HIDDEN + 1) * HIDDEN + (HIDDEN + 1) * INPUTS


def data():
    """A pair of inputs and targets for each step, of the sequences that are long enough."""
    draw = random.Random(1)
    length = sorted((draw.randint(40, 60) for _ in range(SEQUENCES)), reverse=True)
    letters = torch.randint(0, INPUTS, (length[0] + 1, SEQUENCES), generator=torch.Generator().manual_seed(1))
    one = torch.nn.functional.one_hot(letters, INPUTS).float()
    steps = []
    for t in range(length[0]):
        running = sum(n > t for n in length)
        steps.append((one[t, :running].contiguous(), one[t + 1, :running].contiguous()))
    return steps, sum(length)


class Elman(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.input = torch.nn.Linear(INPUTS, HIDDEN)
        self.memory = torch.nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.output = torch.nn.Linear(HIDDEN, INPUTS)

    def error(self, steps):
        hidden, total = torch.full((SEQUENCES, HIDDEN), .5), 0
        for x, y in steps:
            hidden = torch.sigmoid(self.input(x) + self.memory(hidden[:len(x)].detach()))
            total = total + torch.nn.functional.mse_loss(torch.sigmoid(self.output(hidden)), y, reduction='sum')
        return total / 2


def main():
    torch.set_num_threads(int(sys.argv[1]))
    torch.manual_seed(0)
    net, (steps, cases) = Elman(), data()
    rule = torch.optim.SGD(net.parameters(), lr=.02 / cases, momentum=.9)
    print('ready', flush=True)
    for line in sys.stdin:
        limit, began, updates = float(line), time.perf_counter(), 0
        while not updates or time.perf_counter() - began < limit:
            rule.zero_grad(set_to_none=True)
            net.error(steps).backward()
            rule.step()
            updates += 1
        print(LINKS * cases * updates / (time.perf_counter() - began) * 1e-6, flush=True)


main()
