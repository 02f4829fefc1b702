#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Seconds until a network in PyTorch reaches a given accuracy.

  bench/learn.py DATA.npz HIDDEN BATCH RULE RATE ERROR SHARE SECONDS [THREADS [SEED]]    prints {"seconds", "epochs", "right", "mcps"}

The network, its first weights (uniform, +-1 / sqrt(links of the unit)), the order of work and the rule are those of
microprop train.  Only updates are timed: looking for right answers, after each epoch, is not, though microprop pays
for it."""
import json, math, sys, time
import numpy, torch

path, hidden, batch, rule, rate, error, share, limit = sys.argv[1:9]
torch.set_num_threads(int(sys.argv[9]) if len(sys.argv) > 9 else 1)
torch.manual_seed(int(sys.argv[10]) if len(sys.argv) > 10 else 1)
data = numpy.load(path)
y = torch.tensor(data['y'], dtype=torch.float32)
cases = len(y)
if 'x' in data:
    x = torch.tensor(data['x'], dtype=torch.float32)
else:
    x = torch.zeros(cases, int(data['x_shape'][1]))
    x[torch.repeat_interleave(torch.arange(cases), torch.tensor(numpy.diff(data['x_indptr'])).long()), torch.tensor(data['x_indices']).long()] = 1
codes = torch.tensor(data['codes'], dtype=torch.float32) if 'codes' in data else None
net = torch.nn.Sequential(torch.nn.Linear(x.shape[1], int(hidden)), torch.nn.Sigmoid(), torch.nn.Linear(int(hidden), y.shape[1]))
for layer in (net[0], net[2]):
    for p in (layer.weight, layer.bias):
        torch.nn.init.uniform_(p, -1 / math.sqrt(layer.in_features), 1 / math.sqrt(layer.in_features))
rules = {'momentum': lambda p: torch.optim.SGD(p, lr=float(rate), momentum=.9), 'adam': lambda p: torch.optim.Adam(p, lr=float(rate)),
         'rprop': lambda p: torch.optim.Rprop(p, lr=float(rate))}
update = rules[rule](net.parameters())


def lost(out, want):
    if error == 'cross-entropy':
        return torch.nn.functional.binary_cross_entropy_with_logits(out, want, reduction='sum')
    return torch.nn.functional.mse_loss(torch.sigmoid(out), want, reduction='sum') / 2


def nearest(v):
    return torch.cdist(v, codes).argmin(1) if codes is not None else v.argmax(1)


want, size = nearest(y), cases if batch == 'all' else int(batch)
links = sum(p.numel() for p in net.parameters())
seconds, epochs, right = 0., 0, 0.
while right < float(share) and seconds < float(limit):
    order = torch.randperm(cases) if size < cases else None
    began = time.perf_counter()
    done = 0
    for first in range(0, cases, size):
        mine = order[first:first + size] if order is not None else slice(None)
        update.zero_grad(set_to_none=True)
        lost(net(x[mine]), y[mine]).backward()
        update.step()
        done = first + size
        if done % 256 < size and seconds + time.perf_counter() - began > float(limit):
            break
    seconds += time.perf_counter() - began
    epochs += min(done, cases) / cases
    with torch.no_grad():
        right = float((nearest(torch.sigmoid(net(x))) == want).float().mean())
print(json.dumps(dict(seconds=seconds, epochs=epochs, right=right, mcps=links * cases * epochs / seconds * 1e-6)))
