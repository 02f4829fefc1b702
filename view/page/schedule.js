// SPDX-License-Identifier: MIT
// A schedule as a pipeline: units down, cycles across; a block where an operation issues, a bar until its result is
// there. Ten thousand cycles are drawn as density, a few as operations with their names.
import { h, css, num } from "./dom.js";
import { Panned, LABEL, TOP } from "./pan.js";

const UNITS = ["alu", "port", "dram", "switch"],
	TINTS = ["--c0", "--c2", "--c4", "--c3"],
	GAP = 14,
	FEW = 0.9, // pixels of a cycle, from which operations are drawn one by one
	NAMED = 8, // and with their names
	LANE = 5, // pixels of an operation
	NAME = 12; // with its name

// Text of microcode -> operations: { unit, cycle, end, text, recorded, number, reads: [v], writes: v }.
export function parse(listing) {
	const ops = [],
		lines = [];
	for (const line of listing.split("\n")) {
		const found = /^\s*(\d+) \|(.*)$/.exec(line);
		if (!found) continue;
		const cycle = Number(found[1]),
			hash = found[2].indexOf("#");
		const cells = (hash < 0 ? found[2] : found[2].slice(0, hash)).split("|");
		const recorded =
			hash < 0
				? []
				: found[2]
						.slice(hash + 1)
						.split(";")
						.map((s) => s.trim());
		lines.push([cycle, line]);
		let k = 0;
		cells.forEach((cell, unit) => {
			const text = cell.trim();
			if (!text) return;
			const end = /@(\d+)/.exec(text),
				number = /\((\d+)\)/.exec(text),
				was = recorded[k++] ?? "";
			const [left, right] = was.split("->");
			ops.push({
				unit,
				cycle,
				end: end ? Number(end[1]) : cycle + 1,
				text: text.replace(/\s*@\d+.*$/, ""),
				recorded: was,
				number: number ? Number(number[1]) : -1,
				reads: left?.match(/\b[vw]\d+/g) ?? [],
				writes: right?.match(/\b[vw]\d+/)?.[0],
			});
		});
	}
	const by = new Map();
	for (const op of ops) if (op.writes) by.set(op.writes, op);
	for (const op of ops) {
		op.producers = op.reads.map((v) => by.get(v)).filter((p) => p && p !== op);
		op.consumers = [];
	}
	for (const op of ops) for (const p of op.producers) p.consumers.push(op);
	const cycles = ops.reduce((most, o) => Math.max(most, o.end), 1);
	const units = UNITS.map((name, u) => {
		const own = ops.filter((o) => o.unit === u).sort((a, b) => a.cycle - b.cycle),
			free = [];
		for (const o of own) {
			let lane = free.findIndex((at) => at <= o.cycle);
			if (lane < 0) lane = free.length;
			free[lane] = o.end;
			o.lane = lane;
		}
		const issued = new Uint32Array(cycles + 2);
		for (const o of own) issued[o.cycle + 1]++;
		for (let i = 1; i < issued.length; i++) issued[i] += issued[i - 1];
		return {
			name,
			ops: own,
			lanes: Math.max(1, free.length),
			issued,
			latency: own.reduce((most, o) => Math.max(most, o.end - o.cycle), 1),
		};
	}).filter((u) => u.ops.length);
	return { ops, lines, cycles, units };
}

export class Schedule extends Panned {
	constructor(onhover) {
		super();
		this.onhover = onhover;
	}

	set(data) {
		this.data = data;
		this.cycles = data.cycles;
		this.hovered = null;
		this.all();
	}

	// Rows are as high as what is drawn in them needs.
	layout() {
		let y = TOP;
		for (const u of this.data.units) {
			u.y = y;
			u.height =
				this.scale < FEW
					? 40
					: this.scale < NAMED
						? Math.max(22, Math.min(150, u.lanes * LANE + 4))
						: Math.min(480, u.lanes * NAME + 4);
			u.lane = (u.height - 4) / u.lanes;
			y += u.height + GAP;
		}
		this.height = y;
	}

	paint() {
		if (this.data) this.layout();
		super.paint();
	}

	describe() {
		return `schedule: ${num(this.data.ops.length)} operations in ${num(this.cycles)} cycles`;
	}

	hover(px, py) {
		super.hover(px, py);
		if (this.data) this.onhover?.(this.hovered ? this.hovered.cycle : this.cycle);
	}

	found(px, py) {
		const u = this.data.units.find((o) => py >= o.y && py <= o.y + o.height);
		if (!u) return null;
		const cycle = this.from + (px - LABEL) / this.scale,
			lane = Math.floor((py - u.y - 2) / u.lane);
		const ops = u.ops;
		let lo = 0,
			hi = ops.length;
		while (lo < hi) {
			const m = (lo + hi) >> 1;
			if (ops[m].cycle <= cycle) lo = m + 1;
			else hi = m;
		}
		for (let i = lo - 1; i >= 0 && ops[i].cycle + u.latency >= cycle; i--)
			if (ops[i].lane === lane && ops[i].end >= cycle) return ops[i];
		return ops[lo - 1] && cycle - ops[lo - 1].cycle < Math.max(1, 3 / this.scale) ? ops[lo - 1] : null;
	}

	tipOf(op) {
		const latest = op.producers.reduce((m, p) => (!m || p.end > m.end ? p : m), null);
		return [
			h("b", { className: "mono" }, op.text),
			h(
				"div",
				{},
				`issues in cycle ${num(op.cycle)}, result from cycle ${num(op.end)} (${op.end - op.cycle} cycles)`,
			),
			op.recorded && h("div", { className: "mono" }, `recorded: ${op.recorded}`),
			...op.producers
				.slice(0, 4)
				.map((p) =>
					h(
						"div",
						{},
						`reads ${p.writes} of ${p.text.split(" ")[0]} in cycle ${num(p.cycle)}, ready at ${num(p.end)}`,
					),
				),
			latest &&
				h(
					"div",
					{},
					op.cycle === latest.end
						? `waits for ${latest.writes}: issues as soon as it is there`
						: `${op.cycle - latest.end} cycles after its last operand: it waits for the unit`,
				),
			op.consumers.length
				? h(
						"div",
						{},
						`result used by ${op.consumers.length} operation${op.consumers.length === 1 ? "" : "s"}, `,
						`first in cycle ${num(Math.min(...op.consumers.map((c) => c.cycle)))}`,
					)
				: null,
		];
	}

	laneY(u, op) {
		return u.y + 2 + op.lane * u.lane;
	}

	rows(ctx, width) {
		const ink = css("--ink");
		for (const u of this.data.units) {
			const tint = css(TINTS[UNITS.indexOf(u.name)]);
			this.row(ctx, width, u.name, u.y, u.height);
			if (this.scale < FEW) this.density(ctx, u, tint, width);
			else this.clipped(ctx, width, () => this.operations(ctx, u, tint, width, ink));
		}
		if (this.hovered) this.clipped(ctx, width, () => this.arrows(ctx, ink));
		else if (this.cycle !== undefined) {
			ctx.strokeStyle = css("--soft");
			ctx.beginPath();
			ctx.moveTo(this.x(this.cycle) + 0.5, TOP - 4);
			ctx.lineTo(this.x(this.cycle) + 0.5, this.height - GAP);
			ctx.stroke();
		}
	}

	// A column of pixels is as high as the share of its cycles in which the unit issues.
	density(ctx, u, tint, width) {
		ctx.fillStyle = tint;
		for (let px = LABEL; px < width; px++) {
			const a = Math.floor(this.from + (px - LABEL) / this.scale),
				b = Math.min(this.cycles, Math.ceil(this.from + (px + 1 - LABEL) / this.scale));
			if (b <= a) continue;
			const part = (u.issued[b] - u.issued[a]) / (b - a);
			ctx.fillRect(px, u.y + u.height - part * u.height, 1, part * u.height);
		}
	}

	operations(ctx, u, tint, width, ink) {
		const last = this.from + (width - LABEL) / this.scale,
			ops = u.ops;
		let lo = 0,
			hi = ops.length;
		while (lo < hi) {
			const m = (lo + hi) >> 1;
			if (ops[m].cycle < this.from - u.latency) lo = m + 1;
			else hi = m;
		}
		ctx.fillStyle = tint;
		for (let i = lo; i < ops.length && ops[i].cycle <= last; i++) {
			const o = ops[i],
				y = this.laneY(u, o),
				tall = Math.max(1, u.lane - (u.lane > 3 ? 1 : 0));
			ctx.globalAlpha = 0.3;
			ctx.fillRect(this.x(o.cycle), y, (o.end - o.cycle) * this.scale, tall);
			ctx.globalAlpha = 1;
			ctx.fillRect(this.x(o.cycle), y, Math.max(1, this.scale - 0.5), tall);
		}
		if (u.lane >= NAME - 1 && this.scale >= NAMED) {
			ctx.fillStyle = ink;
			ctx.textAlign = "left";
			ctx.font = "10px ui-monospace, monospace";
			for (let i = lo; i < ops.length && ops[i].cycle <= last; i++)
				ctx.fillText(
					ops[i].text,
					this.x(ops[i].cycle) + 2,
					this.laneY(u, ops[i]) + u.lane - 3,
					(ops[i].end - ops[i].cycle) * this.scale - 3,
				);
		}
	}

	arrows(ctx, ink) {
		const unit = (o) => this.data.units.find((u) => u.name === UNITS[o.unit]),
			middle = (o) => {
				const u = unit(o);
				return this.scale < FEW ? u.y + u.height / 2 : this.laneY(u, o) + u.lane / 2;
			};
		const op = this.hovered,
			curve = (x0, y0, x1, y1) => {
				ctx.beginPath();
				ctx.moveTo(x0, y0);
				ctx.bezierCurveTo(x0 + 20, y0, x1 - 20, y1, x1, y1);
				ctx.stroke();
			};
		ctx.lineWidth = 1.5;
		ctx.strokeStyle = css("--bad");
		for (const p of op.producers) curve(this.x(p.end), middle(p), this.x(op.cycle), middle(op));
		ctx.strokeStyle = css("--good");
		for (const c of op.consumers.slice(0, 40)) curve(this.x(op.end), middle(op), this.x(c.cycle), middle(c));
		ctx.strokeStyle = ink;
		ctx.lineWidth = 1;
		const u = unit(op);
		if (this.scale >= FEW)
			ctx.strokeRect(
				this.x(op.cycle) - 0.5,
				this.laneY(u, op) - 0.5,
				(op.end - op.cycle) * this.scale,
				Math.max(3, u.lane),
			);
	}
}
