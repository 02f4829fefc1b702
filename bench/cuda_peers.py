# SPDX-License-Identifier: MIT
"""One row of bench/cuda for a framework: cuda_peers.py KIND LAYERS CASES BATCH ONES ROUNDS SEEDS; prints TCPS of the best round.

An update: forward, squared error, backward, momentum; sigmoid units. Batches are slices of data that lies on the GPU. SEEDS:
networks that are trained side by side on the same batches (JAX: vmap)."""
import sys, time
import numpy

kind, layers, cases, batch, ones, rounds = sys.argv[1], [int(v) for v in sys.argv[2].split(',')], *map(int, sys.argv[3:7])
seeds = int(sys.argv[7]) if len(sys.argv) > 7 else 1
framework, precision = kind.split('-')
connections = sum((a + 1) * b for a, b in zip(layers, layers[1:]))
random = numpy.random.default_rng(1)
if ones:
    x = numpy.zeros((cases, layers[0]), numpy.float32)
    width = layers[0] // ones
    x[numpy.arange(cases)[:, None], random.integers(0, width, (cases, ones)) + width * numpy.arange(ones)] = 1
else:
    x = random.random((cases, layers[0]), numpy.float32)
y = random.integers(0, 2, (cases, layers[-1])).astype(numpy.float32)
weights = [random.uniform(-.1, .1, (a, b)).astype(numpy.float32) for a, b in zip(layers, layers[1:])]
RATE, MOMENTUM, updates = 1e-6, .9, max(1, cases // batch)


def best(run, done):
    """run() does some updates and returns how many; done() waits for the GPU."""
    run(), run(), done()
    rate = 0
    for _ in range(rounds):
        began, n = time.perf_counter(), 0
        while time.perf_counter() - began < .2:
            n += run()
            done()
        rate = max(rate, n / (time.perf_counter() - began))
    print(rate * min(batch, cases) * connections * seeds * 1e-12)


def torch_row():
    import torch
    torch.backends.cuda.matmul.allow_tf32 = False
    half = torch.bfloat16 if precision == 'bf16' else torch.float32
    gpu = [torch.tensor(v, device='cuda', dtype=half) for v in (x, y)]
    w = [torch.tensor(v, device='cuda') for v in weights]
    b = [torch.zeros(n, device='cuda') for n in layers[1:]]
    vw, vb = [torch.zeros_like(v) for v in w], [torch.zeros_like(v) for v in b]

    def update(x, y):
        act = [x]
        for i in range(len(w)):
            act.append(torch.sigmoid(torch.addmm(b[i].to(half), act[-1], w[i].to(half))))
        delta = (act[-1] - y) * act[-1] * (1 - act[-1])
        for i in reversed(range(len(w))):
            gw, gb = act[i].t() @ delta, delta.sum(0)
            if i:
                delta = (delta @ w[i].to(half).t()) * act[i] * (1 - act[i])
            vw[i].mul_(MOMENTUM).sub_(gw.float(), alpha=RATE)
            vb[i].mul_(MOMENTUM).sub_(gb.float(), alpha=RATE)
            w[i].add_(vw[i])
            b[i].add_(vb[i])

    compiled = torch.compile(update, mode='max-autotune-no-cudagraphs')
    slices = [(gpu[0][i * batch:(i + 1) * batch], gpu[1][i * batch:(i + 1) * batch]) for i in range(updates)]
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for s in slices[:1] * 3:
            compiled(*s)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    repeats = max(1, 50 // updates)
    with torch.cuda.graph(graph):
        for s in slices * repeats:
            compiled(*s)

    def run():
        graph.replay()
        return updates * repeats

    best(run, torch.cuda.synchronize)


def jax_row():
    import jax, jax.numpy as jnp
    half = jnp.bfloat16 if precision == 'bf16' else jnp.float32
    jax.config.update('jax_default_matmul_precision', 'highest' if precision == 'fp32' else 'default')
    n = updates * batch
    xs = jnp.asarray(x[:n], half).reshape(updates, -1, layers[0])
    ys = jnp.asarray(y[:n], half).reshape(updates, -1, layers[-1])
    params = [(jnp.asarray(v), jnp.zeros(v.shape[1], jnp.float32)) for v in weights]
    if seeds > 1:
        params = jax.tree.map(lambda v: jnp.tile(v, (seeds,) + (1,) * v.ndim), params)
    state = (params, jax.tree.map(jnp.zeros_like, params))

    def loss(params, x, y):
        for w, b in params:
            x = jax.nn.sigmoid(x @ w.astype(half) + b.astype(half))
        return .5 * jnp.sum((x - y).astype(jnp.float32) ** 2)

    gradient = jax.vmap(jax.grad(loss), (0, None, None)) if seeds > 1 else jax.grad(loss)

    def update(state, xy):
        params, v = state
        g = gradient(params, *xy)
        v = jax.tree.map(lambda v, g: MOMENTUM * v - RATE * g, v, g)
        return (jax.tree.map(jnp.add, params, v), v), None

    repeats = max(1, 50 // updates)

    @jax.jit
    def several(state, xs, ys):
        def epoch(state, _):
            return jax.lax.scan(update, state, (xs, ys))[0], None
        return jax.lax.scan(epoch, state, None, length=repeats)[0]

    def run():
        nonlocal state
        state = several(state, xs, ys)
        return updates * repeats

    best(run, lambda: jax.block_until_ready(state))


if seeds > 1 and framework == 'torch':
    sys.exit('seeds are measured with JAX')
torch_row() if framework == 'torch' else jax_row()
