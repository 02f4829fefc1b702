// SPDX-License-Identifier: MIT
// Weights of one block of a network: Hinton diagram, histogram, histograms of all checkpoints, receptive fields.
import { h, num, css, card, swatch, fit, later } from "./dom.js";
import { Grid, columnsFor } from "./grid.js";

const BINS = 60,
	HEIGHT = 210,
	FONT = "12px system-ui, sans-serif",
	FIELDS = 64; // at most

const spanOf = (values) => values.reduce((m, v) => Math.max(m, Math.abs(v)), 1e-6);

// Numbers of values from -span to span.
function bins(values, span) {
	const out = new Float32Array(BINS);
	for (const v of values) out[Math.max(0, Math.min(BINS - 1, Math.floor(((v / span + 1) / 2) * BINS)))]++;
	return out;
}

const canvas = () => h("canvas", { className: "plain", role: "img" });

export class Weights {
	constructor(onpick) {
		this.block = null;
		this.pick = h("select", { "aria-label": "block", onchange: () => onpick(Number(this.pick.value)) });
		this.hinton = new Grid({
			label: "Hinton diagram",
			squares: true,
			most: 20,
			tip: (r, c, v) => `${this.block.source}[${c}] → ${this.block.to}[${r}]: ${num(v)}`,
		});
		this.histogram = canvas();
		this.overTime = canvas();
		this.overTimeNote = h("p", { className: "small soft" });
		this.fields = h("div", { className: "bar" });
		this.fieldsNote = h("p", { className: "small soft" });
		const box = h("div", { className: "chart" }, this.histogram);
		this.histogramCard = card("Histogram", box);
		new ResizeObserver(later(() => this.drawCounts())).observe(box);
		this.cards = [
			card(
				"Weights",
				h(
					"div",
					{ className: "bar" },
					h("label", {}, "block ", this.pick),
					h(
						"span",
						{ className: "small soft" },
						swatch("var(--plus)"),
						"positive  ",
						swatch("var(--minus)"),
						"negative",
					),
				),
				this.hinton.element,
				h(
					"p",
					{ className: "small soft" },
					"Rows are units that links lead to, columns those they come from; ",
					"the area of a square is the weight.",
				),
			),
			card("Receptive fields", this.fieldsNote, this.fields),
			card("Histogram over time", h("div", { className: "chart" }, this.overTime), this.overTimeNote),
		];
	}

	// net: as /api/net has it; links: /api/links; weights: of all links; past: [{ label, weights }] of checkpoints
	set(net, links, weights, past) {
		Object.assign(this, { net, links, weights, past });
	}
	choose(blocks, index) {
		this.pick.replaceChildren(...blocks.map((b, i) => h("option", { value: i }, `${b.source} → ${b.to}`)));
		this.pick.value = index;
		this.block = blocks[index];
		this.draw();
	}

	group(name) {
		return name === "true" ? { name, first: 0, units: 1 } : this.links.groups.find((g) => g.name === name);
	}
	// Weights of the block by unit that links lead to; NaN: no link.
	matrix(weights) {
		const from = this.group(this.block.source),
			to = this.group(this.block.to);
		if (!from || !to) return null;
		const m = new Float32Array(from.units * to.units).fill(NaN);
		for (let i = 0; i < weights.length; i++) {
			const f = this.links.from[i] - from.first,
				t = this.links.to[i] - to.first;
			if (f >= 0 && f < from.units && t >= 0 && t < to.units) m[t * from.units + f] = weights[i];
		}
		return { from, to, m };
	}

	draw() {
		const found = this.block && this.matrix(this.weights);
		if (!found) return;
		this.hinton.set(found.to.units, found.from.units, found.m);
		this.values = found.m.filter(Number.isFinite);
		this.drawCounts();
		this.drawFields(found);
	}
	// As wide as they are now.
	drawCounts() {
		if (!this.values || !this.histogram.isConnected) return;
		this.drawHistogram(this.values);
		this.drawOverTime();
	}

	drawHistogram(values) {
		const [ctx, width] = fit(this.histogram, HEIGHT),
			span = spanOf(values),
			counts = bins(values, span),
			top = Math.max(...counts);
		const bar = (width - 20) / BINS,
			mean = values.reduce((s, v) => s + v, 0) / values.length,
			sd = Math.sqrt(values.reduce((s, v) => s + (v - mean) ** 2, 0) / values.length);
		ctx.clearRect(0, 0, width, HEIGHT);
		counts.forEach((n, i) => {
			const tall = (160 * n) / top;
			ctx.fillStyle = css(i < BINS / 2 ? "--minus" : "--plus");
			ctx.fillRect(10 + i * bar + 0.5, 170 - tall, Math.max(1, bar - 1), tall);
		});
		ctx.fillStyle = css("--soft");
		ctx.font = FONT;
		ctx.strokeStyle = css("--line");
		ctx.beginPath();
		ctx.moveTo(10, 170.5);
		ctx.lineTo(width - 10, 170.5);
		ctx.stroke();
		ctx.textAlign = "left";
		ctx.fillText(num(-span, 3), 10, 187);
		ctx.textAlign = "center";
		ctx.fillText("0", width / 2, 187);
		ctx.textAlign = "right";
		ctx.fillText(num(span, 3), width - 10, 187);
		ctx.textAlign = "left";
		ctx.fillText(`${num(values.length)} weights, mean ${num(mean, 3)}, deviation ${num(sd, 3)}`, 10, 206);
		this.histogram.setAttribute(
			"aria-label",
			`histogram of ${values.length} weights from ${num(-span)} to ${num(span)}, ` +
				`mean ${num(mean)}, deviation ${num(sd)}`,
		);
	}

	drawOverTime() {
		const left = 45,
			[ctx, width] = fit(this.overTime, HEIGHT),
			past = this.past,
			all = past.map((s) => this.matrix(s.weights)?.m.filter(Number.isFinite) ?? []),
			span = Math.max(1e-6, ...all.map(spanOf)),
			slice = (width - left - 5) / Math.max(1, past.length);
		ctx.clearRect(0, 0, width, HEIGHT);
		this.overTimeNote.textContent =
			past.length > 1
				? `${past.length} checkpoints, ${past[0].label} to ${past.at(-1).label}: the darker, the more weights.`
				: "Grows with every checkpoint while the run is trained; train --checkpoints-every N keeps older ones.";
		ctx.fillStyle = css("--c0");
		all.forEach((values, i) => {
			const counts = bins(values, span),
				top = Math.max(...counts);
			counts.forEach((n, k) => {
				ctx.globalAlpha = Math.sqrt(n / top);
				ctx.fillRect(
					left + i * slice,
					185 - ((k + 1) * 175) / BINS,
					Math.max(1, slice - (slice > 6 ? 1 : 0)),
					175 / BINS + 0.3,
				);
			});
		});
		ctx.globalAlpha = 1;
		ctx.fillStyle = css("--soft");
		ctx.font = FONT;
		ctx.textAlign = "right";
		ctx.fillText(num(span, 2), left - 5, 20);
		ctx.fillText("0", left - 5, 101);
		ctx.fillText(num(-span, 2), left - 5, 185);
		const every = Math.ceil(past.length / Math.max(1, Math.floor((width - left) / 80)));
		ctx.textAlign = "center";
		past.forEach((s, i) => {
			if (i % every === 0) ctx.fillText(s.label, left + (i + 0.5) * slice, 203);
		});
		this.overTime.setAttribute("aria-label", this.overTimeNote.textContent);
	}

	drawFields({ from, to, m }) {
		const { source, to: target } = this.block;
		this.fields.replaceChildren();
		if (source === "true" || from.units < 4) {
			this.fieldsNote.textContent = "Choose a block that comes from a group of several units.";
			return;
		}
		const columns = columnsFor(from.units),
			rows = Math.ceil(from.units / columns),
			shown = Math.min(to.units, FIELDS);
		const part = shown < to.units ? `, the first ${shown}` : "";
		this.fieldsNote.textContent =
			`Weights from ${source} (as ${rows} × ${columns}) to each unit of ${target}${part}.`;
		for (let u = 0; u < shown; u++) {
			const field = new Grid({
				label: `weights to ${target}[${u}]`,
				least: 3,
				most: Math.max(3, Math.min(12, Math.floor(112 / columns))),
				tip: (r, c, v) => `${source}[${r * columns + c}] → ${target}[${u}]: ${num(v)}`,
			});
			this.fields.append(
				h("figure", {}, field.element, h("figcaption", { className: "small soft" }, String(u))),
			);
			field.set(rows, columns, m.slice(u * from.units, (u + 1) * from.units));
		}
	}
}
