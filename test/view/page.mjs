// SPDX-License-Identifier: MIT
// Functions of the page that need no browser: axes of charts, curves, schedules read from listings, speech.
// PAGE: the folder of its files; MICROPROP: the program.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";

const load = (name) => import(join(process.env.PAGE, name));
const { Chart, smooth, ticks } = await load("plot.js");
const { columnsFor } = await load("grid.js");
const { parse } = await load("schedule.js");
const { RATE, synthesize, wav } = await load("speech.js");

// Ticks stand in the range, in order, and are few, also where the range is no larger than rounding errors.
for (const [lo, hi, log] of [
	[0, 1671, false],
	[-3, 2.5, false],
	[123.456, 123.45600000000002, false],
	[1, 1 + 2 ** -52, false],
	[1e-300, 2e-300, false],
	[1e15, 1e15 + 2, false],
	[1, 566, true],
	[1.2, 1.8, true],
	[1e-12, 1e12, true],
]) {
	const list = ticks(lo, hi, log, 5);
	assert.ok(list.length <= 15, `${lo} to ${hi} has ${list.length} ticks`);
	list.forEach((v, i) => {
		assert.ok(v >= lo - 1e-4 * Math.abs(lo) && v <= hi + 1e-4 * Math.abs(hi), `${v} is not in ${lo} to ${hi}`);
		assert.ok(i === 0 || v >= list[i - 1]);
	});
}
assert.deepEqual(ticks(0, 1671, false, 4), [0, 500, 1000, 1500]);
assert.deepEqual(ticks(1, 566, true, 5), [1, 10, 100]);
assert.ok(ticks(1.2, 1.8, true, 5).length > 1, "less than an octave of a logarithmic axis has ticks");
assert.ok(!Object.is(ticks(-1, 1, false, 4).find((v) => v === 0), -0));

// The range of a chart: never empty, never reversed, positive where it is logarithmic.
const range = (series, options = {}) => Chart.prototype.range.call({ series, zoom: null, ...options });
const wide = (r) => r.x1 > r.x0 && r.y1 > r.y0;
const one = (x, y) => [{ x, y }];
assert.equal(range([]), null);
assert.ok(wide(range(one([1], [5]))));
assert.ok(wide(range(one([1, 2], [0, 0]))));
assert.ok(wide(range(one([1, 2], [123.456, 123.45600000000002]))));
assert.ok(wide(range(one([1, 2, 3], [NaN, 0.5, 1]), { percent: true })));
const log = range(one([0, 1, 2], [0, 1, 10]), { logX: true, logY: true, zoom: [-5, 2] });
assert.ok(wide(log) && log.x0 > 0 && log.y0 > 0);

// Smoothing keeps constants, from the first value on, and gaps.
assert.deepEqual(
	smooth([2, 2, 2], 0.9).map((v) => Math.round(1e9 * v) / 1e9),
	[2, 2, 2],
);
assert.ok(Number.isNaN(smooth([1, NaN, 3], 0.5)[1]));
assert.equal(columnsFor(784), 28);
assert.equal(columnsFor(203), 29);

// A listing gives every operation, when it is issued, and which value it reads of which.
const { stdout } = spawnSync(process.env.MICROPROP, ["gf11", "microcode", "dot"], { encoding: "utf8" });
const { ops, cycles, units } = parse(stdout);
assert.equal(ops.length, 512);
assert.equal(cycles, 460);
assert.deepEqual(
	units.map((u) => u.name),
	["alu", "port"],
);
const products = ops.filter((o) => o.text.startsWith("fmul"));
assert.equal(products.length, 128);
for (const p of products) {
	assert.equal(p.producers.length, 2);
	for (const o of p.producers) assert.ok(o.text.startsWith("load") && o.end <= p.cycle);
	assert.equal(p.consumers.length, 1);
}
for (const u of units) assert.equal(u.issued.at(-1), u.ops.length);

// Speech: finite samples, silence for nothing, a file of 16 bits.
const red = synthesize([["r>", "E1", "d<"]]);
assert.ok(red.every(Number.isFinite) && Math.max(...red) > 0.5 && red.length > 0.2 * RATE);
assert.equal(wav(red).size, 44 + 2 * red.length);
console.log("all as it should be");
