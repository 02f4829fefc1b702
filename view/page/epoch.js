// SPDX-License-Identifier: MIT
// A simulated epoch: what its cycles are for, in all and in the order of time.
import { h, num, card, swatch, colour, css } from "./dom.js";
import { Panned, LABEL, TOP } from "./pan.js";

// Keys of `gf11 sweep --json` and `gf11 program --timeline --json`.
const parts = [
	["forward", "forward"],
	["backward", "backward"],
	["units", "unit functions"],
	["memory", "fetch from DRAM"],
	["update", "sum and update"],
	["host", "host calls"],
];
const ROW = 16,
	GAP = 4,
	rowY = (i) => TOP + i * (ROW + GAP);

class Timeline extends Panned {
	set(stretches, ms) {
		Object.assign(this, { stretches, ms });
		const last = stretches.at(-1);
		this.cycles = last ? last.start + last.cycles + last.host : 0;
		this.height = TOP + parts.length * (ROW + GAP);
		this.all();
	}

	describe() {
		return `timeline of an epoch: ${this.stretches.length} stretches in ${num(this.cycles)} cycles`;
	}

	found(px, py) {
		const cycle = this.from + (px - LABEL) / this.scale;
		return py < TOP ? null : this.stretches.findLast((s) => s.start <= cycle);
	}

	tipOf(s) {
		const name = parts.find(([key]) => key === s.part)[1];
		return [
			h("b", {}, name),
			h("div", {}, `from cycle ${num(s.start)}, ${num(this.ms(s.cycles + s.host), 3)} ms`),
			h("div", {}, `${num(s.calls)} ${s.calls === 1 ? "call" : "calls"}: ${num(s.cycles)} cycles`),
			h("div", {}, `and ${num(s.host)} cycles of the host`),
		];
	}

	rows(ctx, width) {
		parts.forEach(([key], i) => this.row(ctx, width, key, rowY(i), ROW));
		this.clipped(ctx, width, () => this.bars(ctx, width));
	}

	bars(ctx, width) {
		const host = parts.length - 1,
			wide = (s) => Math.max(0.7, (s.cycles + s.host) * this.scale),
			number = (s) => parts.findIndex(([key]) => key === s.part);
		for (const s of this.stretches) {
			const x = this.x(s.start),
				i = number(s),
				share = s.host / (s.cycles + s.host);
			if (x > width || x + wide(s) < LABEL) continue;
			ctx.fillStyle = colour(i);
			ctx.fillRect(x, rowY(i), wide(s), ROW);
			ctx.fillStyle = colour(host); // between the calls: as high as its share
			ctx.fillRect(x, rowY(host) + ROW * (1 - share), wide(s), ROW * share);
		}
		if (!this.hovered) return;
		ctx.strokeStyle = css("--ink");
		ctx.strokeRect(
			this.x(this.hovered.start) - 0.5,
			rowY(number(this.hovered)) - 0.5,
			wide(this.hovered) + 1,
			ROW + 1,
		);
	}
}

export class Epoch {
	constructor() {
		this.speed = h("div", { className: "figures" });
		this.bar = h("div", { className: "shares", role: "img" });
		this.table = h("div");
		this.timeline = new Timeline();
		this.element = card("An epoch", this.speed, this.bar, this.table);
		this.timeElement = card(
			"The epoch in time",
			h("div", { className: "bar" }, this.timeline.tools()),
			this.timeline.box,
		);
	}

	// row: of gf11 sweep; clock: nanoseconds of a cycle
	set(row, clock) {
		this.row = row;
		this.ms = (cycles) => cycles * clock * 1e-6;
		const percent = (key) => `${((100 * row[key]) / row.cycles).toFixed(1)} %`;
		const figure = (value, name, id) => h("div", {}, h("b", { id }, value), h("span", {}, name));
		this.speed.replaceChildren(
			figure(num(row.mcps), "million connections per second", "mcps"),
			figure(num(row.cycles), "cycles", "epoch-cycles"),
			figure(`${num(this.ms(row.cycles), 4)} ms`, "per epoch of 12,022 cases", "epoch-ms"),
		);
		this.bar.replaceChildren(
			...parts.map(([key, name], i) => {
				const d = h("div", { title: `${name}: ${num(row[key])} cycles` });
				d.style.width = percent(key).replace(" ", "");
				d.style.background = `var(--c${i})`;
				return d;
			}),
		);
		this.bar.setAttribute("aria-label", parts.map(([key, name]) => `${name} ${percent(key)}`).join(", "));
		this.table.replaceChildren(
			h(
				"table",
				{},
				h(
					"tbody",
					{},
					parts.map(([key, name], i) =>
						h(
							"tr",
							{},
							h("th", { scope: "row" }, swatch(`var(--c${i})`), name),
							h("td", { className: "n" }, num(row[key])),
							h("td", { className: "word" }, "cycles"),
							h("td", { className: "n" }, `${num(this.ms(row[key]), 3)} ms`),
							h("td", { className: "n" }, percent(key)),
						),
					),
				),
			),
		);
	}

	setTimeline(stretches) {
		this.timeline.set(stretches, this.ms);
	}
	draw() {
		this.timeline.draw();
	}
}
