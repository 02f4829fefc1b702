# SPDX-License-Identifier: MIT
"""Exported ONNX files: python3 onnx_check.py NAME...

The checker of onnx accepts each with full inference of shapes; its nodes, evaluated here with numpy, give the outputs
of predict within 1e-6 (relative to numbers above 1); in the plain form, where float32 itself is not that exact, within
LOOSE.
"""
import json
import sys

import numpy as np
import onnx
from onnx import numpy_helper

LOOSE = {"spirals": 2e-5, "letters": 3e-6, "house": 5e-6}      # many large weights: predict is as far from exact arithmetic
TYPES = {1: np.float32, 7: np.int64, 9: bool, 11: np.float64}


def softmax(x, axis):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


OPS = {
    "Gemm": lambda i, a: i[0] @ (i[1].T if a.get("transB") else i[1]) + i[2],
    "Concat": lambda i, a: np.concatenate(i, a["axis"]),
    "Sigmoid": lambda i, a: (1 / (1 + np.exp(-i[0].astype(np.float64)))).astype(i[0].dtype),
    "Tanh": lambda i, a: np.tanh(i[0]),
    "Relu": lambda i, a: np.maximum(i[0], 0),
    "Softmax": lambda i, a: softmax(i[0], a["axis"]),
    "Softsign": lambda i, a: i[0] / (1 + abs(i[0])),
    "Sign": lambda i, a: np.sign(i[0]),
    "Exp": lambda i, a: np.exp(i[0]),
    "Neg": lambda i, a: -i[0],
    "Abs": lambda i, a: abs(i[0]),
    "Pow": lambda i, a: np.power(i[0], i[1]),
    "Add": lambda i, a: i[0] + i[1],
    "Sub": lambda i, a: i[0] - i[1],
    "Mul": lambda i, a: i[0] * i[1],
    "Div": lambda i, a: i[0] / i[1],
    "Min": lambda i, a: np.minimum(i[0], i[1]),
    "Max": lambda i, a: np.maximum(i[0], i[1]),
    "Less": lambda i, a: i[0] < i[1],
    "Not": lambda i, a: ~i[0],
    "Equal": lambda i, a: i[0] == i[1],
    "IsNaN": lambda i, a: np.isnan(i[0]),
    "Where": lambda i, a: np.where(i[0], i[1], i[2]),
    "Cast": lambda i, a: i[0].astype(TYPES[a["to"]]),
    "Gather": lambda i, a: np.take(i[0], i[1], a["axis"]),
    "Slice": lambda i, a: i[0][:, i[1][0]:i[2][0]],
    "ReduceSum": lambda i, a: i[0].sum(axis=1, keepdims=True, dtype=i[0].dtype),
    "Identity": lambda i, a: i[0],
    "ArgMax": lambda i, a: np.argmax(i[0], a["axis"]),
}


def run(model, feeds):
    v = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    v.update(feeds)
    with np.errstate(all="ignore"):
        for n in model.graph.node:
            attributes = {a.name: onnx.helper.get_attribute_value(a) for a in n.attribute}
            if n.op_type == "Split":
                v.update(zip(n.output, np.split(v[n.input[0]], len(n.output), attributes["axis"])))
                continue
            v[n.output[0]] = OPS[n.op_type]([v[i] for i in n.input], attributes)
    return v


def predict(model, x):
    """All rows at once, or one after the other where a network remembers."""
    kind = TYPES[model.graph.input[0].type.tensor_type.elem_type]
    states = [i for i in model.graph.input if i.name != "x"]
    if not states:
        return run(model, {"x": x.astype(kind)})
    start = json.loads({p.key: p.value for p in model.metadata_props}["start"])
    feeds = {i.name: np.full((1, i.type.tensor_type.shape.dim[1].dim_value), start[i.name], np.float32) for i in states}
    rows = []
    for row in x:
        v = run(model, {"x": row[None].astype(kind), **feeds})
        feeds = {i.name: v[i.name.replace("state/", "next/")] for i in states}
        rows.append(v["y"][0])
    return {"y": np.array(rows)}


wrong = 0
for name in sys.argv[1:]:
    model = onnx.load(f"{name}.onnx")
    onnx.checker.check_model(model, full_check=True)
    assert model.opset_import[0].version <= 17
    plain = name.endswith("-plain")
    name = name.replace("-plain", "")
    x, y = (np.loadtxt(f"{name}.{e}", delimiter=",", ndmin=2) for e in "xy")
    out = predict(model, x)
    off = np.max(abs(out["y"] - y) / np.maximum(1, abs(y)))
    most = LOOSE.get(name, 1e-6) if plain else 1e-6
    print(f"{name}: opset {model.opset_import[0].version}, {len(model.graph.node)} nodes, {len(x)} cases, {off:.2g}")
    wrong += not off <= most or len(x) != len(out["y"])
    if "label" in out and "label" in [o.name for o in model.graph.output] and y.shape[1] > 1:
        wrong += not np.array_equal(out["label"], np.argmax(y, 1))
sys.exit(wrong > 0)
