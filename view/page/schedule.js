// SPDX-License-Identifier: MIT
// A schedule as a pipeline: units down, cycles across; a block where an operation issues, a bar until its result is
// there. Ten thousand cycles are drawn as density, a few as operations with their names.
import { h, css, num, fit, later } from "./dom.js";

const UNITS = ["alu", "port", "dram", "switch"],
	LANE = 5,
	LABEL = 52,
	TOP = 20,
	GAP = 14;

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
	const cycles = Math.max(1, ...ops.map((o) => o.end));
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
			latency: Math.max(1, ...own.map((o) => o.end - o.cycle)),
		};
	}).filter((u) => u.ops.length);
	return { ops, lines, cycles, units, byCycle: new Map(lines) };
}

export class Schedule {
	constructor(onhover) {
		this.canvas = h("canvas", { tabIndex: 0, role: "img" });
		this.tip = h("div", { className: "tip", hidden: true });
		this.box = h("div", { className: "chart" }, this.canvas, this.tip);
		this.onhover = onhover;
		this.from = 0;
		this.scale = 1; // first cycle, pixels of a cycle
		this.draw = later(() => this.paint());
		this.listen();
		new ResizeObserver(() => {
			if (this.data) {
				this.clamp();
				this.draw();
			}
		}).observe(this.box);
	}

	set(data) {
		this.data = data;
		this.hovered = null;
		let y = TOP;
		for (const u of data.units) {
			u.y = y;
			u.height = Math.max(22, Math.min(150, u.lanes * LANE + 4));
			u.lane = (u.height - 4) / u.lanes;
			y += u.height + GAP;
		}
		this.height = y;
		this.all();
	}

	width() {
		return Math.max(50, this.box.clientWidth - LABEL);
	}
	all() {
		this.from = 0;
		this.scale = this.width() / this.data.cycles;
		this.draw();
	}
	clamp() {
		this.scale = Math.max(this.width() / this.data.cycles, Math.min(60, this.scale));
		this.from = Math.max(0, Math.min(this.data.cycles - this.width() / this.scale, this.from));
	}
	zoom(factor, px = this.width() / 2) {
		const at = this.from + px / this.scale;
		this.scale *= factor;
		this.scale = Math.max(this.width() / this.data.cycles, Math.min(60, this.scale));
		this.from = at - px / this.scale;
		this.clamp();
		this.draw();
	}
	pan(cycles) {
		this.from += cycles;
		this.clamp();
		this.draw();
	}

	opAt(px, py) {
		const u = this.data.units.find((o) => py >= o.y && py <= o.y + o.height);
		if (!u || px < LABEL) return null;
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

	hover(e) {
		if (!this.data) return;
		const box = this.canvas.getBoundingClientRect(),
			px = e.clientX - box.left,
			py = e.clientY - box.top;
		this.cycle = Math.max(0, Math.min(this.data.cycles - 1, Math.floor(this.from + (px - LABEL) / this.scale)));
		this.hovered = this.opAt(px, py);
		this.onhover?.(this.hovered ? this.hovered.cycle : this.cycle, this.hovered);
		this.showTip(px, py);
		this.draw();
	}

	showTip(px, py) {
		const op = this.hovered;
		this.tip.hidden = !op;
		if (!op) return;
		const latest = op.producers.reduce((m, p) => (!m || p.end > m.end ? p : m), null);
		this.tip.replaceChildren(
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
				: "",
		);
		const w = this.tip.offsetWidth,
			wide = this.box.clientWidth;
		this.tip.style.left = `${px + 16 + w < wide ? px + 16 : Math.max(0, px - 16 - w)}px`;
		this.tip.style.top = `${py + 14}px`;
	}

	x(cycle) {
		return LABEL + (cycle - this.from) * this.scale;
	}
	laneY(u, op) {
		return u.y + 2 + op.lane * u.lane;
	}

	paint() {
		const d = this.data;
		if (!d || !this.box.isConnected) return;
		const [ctx, width] = fit(this.canvas, this.height),
			tints = ["--c0", "--c2", "--c4", "--c3"].map(css),
			ink = css("--ink");
		ctx.clearRect(0, 0, width, this.height);
		ctx.font = '12px system-ui, "DejaVu Sans", sans-serif';
		this.axis(ctx, width);
		for (const u of d.units) {
			const tint = tints[UNITS.indexOf(u.name)];
			ctx.fillStyle = css("--grid");
			ctx.fillRect(LABEL, u.y, width - LABEL, u.height);
			ctx.fillStyle = css("--soft");
			ctx.textAlign = "right";
			ctx.fillText(u.name, LABEL - 8, u.y + u.height / 2 + 4);
			if (this.scale < 0.9) this.density(ctx, u, tint, width);
			else this.operations(ctx, u, tint, width, ink);
		}
		if (this.hovered) this.arrows(ctx, ink);
		else if (this.cycle !== undefined) {
			ctx.strokeStyle = css("--soft");
			ctx.beginPath();
			ctx.moveTo(this.x(this.cycle) + 0.5, TOP - 4);
			ctx.lineTo(this.x(this.cycle) + 0.5, this.height - GAP);
			ctx.stroke();
		}
		this.canvas.setAttribute(
			"aria-label",
			`schedule: ${num(d.ops.length)} operations in ${num(d.cycles)} cycles; shown from cycle ` +
				`${num(Math.round(this.from))} to ${num(Math.round(this.from + this.width() / this.scale))}`,
		);
	}

	axis(ctx, width) {
		const raw = 90 / this.scale,
			p = 10 ** Math.floor(Math.log10(raw)),
			step = Math.max(
				1,
				[1, 2, 5, 10].map((m) => m * p).find((s) => s >= raw),
			);
		ctx.fillStyle = css("--soft");
		ctx.textAlign = "center";
		for (let c = Math.ceil(this.from / step) * step; this.x(c) < width; c += step)
			ctx.fillText(num(c), this.x(c), 12);
		ctx.textAlign = "right";
		ctx.fillText("cycle", LABEL - 8, 12);
	}

	// A column of pixels is as high as the share of its cycles in which the unit issues.
	density(ctx, u, tint, width) {
		ctx.fillStyle = tint;
		for (let px = LABEL; px < width; px++) {
			const a = Math.floor(this.from + (px - LABEL) / this.scale),
				b = Math.min(this.data.cycles, Math.ceil(this.from + (px + 1 - LABEL) / this.scale));
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
		ctx.save();
		ctx.beginPath();
		ctx.rect(LABEL, 0, width - LABEL, this.height);
		ctx.clip();
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
		if (u.lane >= 11 && this.scale > 8) {
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
		ctx.restore();
		ctx.font = '12px system-ui, "DejaVu Sans", sans-serif';
	}

	arrows(ctx, ink) {
		const unit = (o) => this.data.units.find((u) => u.name === UNITS[o.unit]),
			middle = (o) => {
				const u = unit(o);
				return this.scale < 0.9 ? u.y + u.height / 2 : this.laneY(u, o) + u.lane / 2;
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
		if (this.scale >= 0.9)
			ctx.strokeRect(
				this.x(op.cycle) - 0.5,
				this.laneY(u, op) - 0.5,
				(op.end - op.cycle) * this.scale,
				Math.max(3, u.lane),
			);
	}

	listen() {
		const c = this.canvas;
		c.addEventListener("pointermove", (e) => {
			if (this.dragged) {
				this.from = this.dragged.from - (e.clientX - this.dragged.x) / this.scale;
				this.clamp();
				this.tip.hidden = true;
				this.draw();
				return;
			}
			this.hover(e);
		});
		c.addEventListener("pointerdown", (e) => {
			this.dragged = { x: e.clientX, from: this.from };
			c.setPointerCapture(e.pointerId);
		});
		c.addEventListener("pointerup", () => {
			this.dragged = null;
		});
		c.addEventListener("pointerleave", () => {
			this.hovered = null;
			this.cycle = undefined;
			this.tip.hidden = true;
			this.draw();
		});
		c.addEventListener(
			"wheel",
			(e) => {
				// until it is clicked, the page scrolls
				if (!this.data || (document.activeElement !== c && !e.ctrlKey)) return;
				e.preventDefault();
				if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY))
					this.pan((e.deltaX || e.deltaY) / this.scale);
				else this.zoom(e.deltaY > 0 ? 1 / 1.25 : 1.25, e.clientX - c.getBoundingClientRect().left - LABEL);
			},
			{ passive: false },
		);
		c.addEventListener("dblclick", () => this.all());
		c.addEventListener("keydown", (e) => {
			const view = this.width() / this.scale,
				keys = {
					ArrowLeft: () => this.pan(-view / 6),
					ArrowRight: () => this.pan(view / 6),
					"+": () => this.zoom(1.4),
					"=": () => this.zoom(1.4),
					"-": () => this.zoom(1 / 1.4),
					0: () => this.all(),
				};
			if (!keys[e.key] || !this.data) return;
			keys[e.key]();
			e.preventDefault();
		});
	}
}
