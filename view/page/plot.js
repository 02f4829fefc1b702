// SPDX-License-Identifier: MIT
// Line charts on a canvas: linear and logarithmic axes, zoom by dragging, wheel or keys, values under the pointer; the
// same drawing goes to PNG, to SVG (svg.js) and, as numbers, to CSV.
import { h, css, num, fit, later, save, swatch } from "./dom.js";
import { SvgContext } from "./svg.js";

const LEFT = 58,
	RIGHT = 12,
	TOP = 10,
	BOTTOM = 34,
	HEIGHT = 260;

// Values to mark on an axis from lo to hi, about as many as `most`; log: lo > 0.
export function ticks(lo, hi, log, most) {
	const out = [];
	if (log) {
		const a = Math.floor(Math.log10(lo)),
			b = Math.ceil(Math.log10(hi));
		const step = Math.max(1, Math.ceil((b - a) / most));
		const fine = b - a <= 2 ? [1, 2, 5] : [1];
		for (let e = a; e <= b; e += step)
			for (const m of fine) {
				const v = m * 10 ** e;
				if (v >= lo * 0.9999 && v <= hi * 1.0001) out.push(v);
			}
		if (out.length > 1) return out;
		out.length = 0; // less than an octave: as on a linear axis
	}
	const raw = (hi - lo) / most,
		p = 10 ** Math.floor(Math.log10(raw));
	const step = [1, 2, 5, 10].map((m) => m * p).find((s) => s >= raw) ?? raw;
	const first = Math.ceil(lo / step),
		count = Math.min(2 * most, Math.floor(hi / step + 1e-6) - first + 1); // bounded, whatever the rounding
	for (let i = 0; i < count; i++) out.push((first + i) * step || 0); // not -0
	return out;
}

// Values that differ by no more than rounding errors do not span an axis.
const alike = (lo, hi) => hi - lo <= 1e-9 * Math.max(Math.abs(lo), Math.abs(hi));

// Exponential moving average, corrected at its beginning.
export function smooth(y, weight) {
	if (!weight) return y;
	let sum = 0,
		total = 0;
	return y.map((v) => {
		if (!Number.isFinite(v)) return v;
		sum = sum * weight + v * (1 - weight);
		total = total * weight + (1 - weight);
		return sum / total;
	});
}

export class Chart {
	// options: title, xTitle, percent, legend (it has one), controls (an element beside the title)
	constructor(options) {
		Object.assign(this, { title: "", xTitle: "epoch", logX: false, logY: false, smoothing: 0 }, options);
		this.series = []; // { name, colour, dash, x: [], y: [] }
		this.zoom = null; // [x0, x1]
		this.canvas = h("canvas", { tabIndex: 0, role: "img" });
		this.tip = h("div", { className: "tip", hidden: true });
		this.box = h("div", { className: "chart" }, this.canvas, this.tip);
		this.heading = h("h2");
		const tool = (text, label, fn) =>
			h("button", { type: "button", title: label, "data-does": label, onclick: fn }, text);
		this.element = h(
			"section",
			{ className: "card" },
			h(
				"div",
				{ className: "head" },
				this.heading,
				this.controls,
				h(
					"div",
					{ className: "tools" },
					tool("all", "show all of it", () => {
						this.zoom = null;
						this.draw();
					}),
					tool("PNG", "save as PNG", () => this.canvas.toBlob((b) => save(this.fileName("png"), b))),
					tool("SVG", "save as SVG", () =>
						save(this.fileName("svg"), new Blob([this.svg()], { type: "image/svg+xml" })),
					),
					tool("CSV", "save as CSV", () =>
						save(this.fileName("csv"), new Blob([this.csv()], { type: "text/csv" })),
					),
				),
			),
			this.box,
			this.legend ? (this.legendBox = h("div", { className: "bar small soft" })) : "",
		);
		this.rename(this.title);
		this.draw = later(() => this.paint());
		this.listen();
		new ResizeObserver(() => this.draw()).observe(this.box);
	}

	rename(title) {
		this.title = this.heading.textContent = title;
		this.element.setAttribute("aria-label", title);
		for (const b of this.element.querySelectorAll("[data-does]"))
			b.setAttribute("aria-label", `${title}: ${b.dataset.does}`);
	}

	fileName(ending) {
		return `${this.title.toLowerCase().replace(/[^a-z0-9]+/g, "-")}.${ending}`;
	}

	range() {
		let x0 = Infinity,
			x1 = -Infinity,
			y0 = Infinity,
			y1 = -Infinity;
		for (const s of this.series)
			for (const x of s.x) {
				if (this.logX && x <= 0) continue;
				if (x < x0) x0 = x;
				if (x > x1) x1 = x;
			}
		if (this.zoom) {
			x0 = this.logX ? Math.max(x0, this.zoom[0]) : this.zoom[0]; // x0 is positive then
			x1 = this.zoom[1];
		}
		for (const s of this.series)
			for (let i = 0; i < s.x.length; i++) {
				const y = s.y[i];
				if (!Number.isFinite(y) || s.x[i] < x0 || s.x[i] > x1 || (this.logY && y <= 0)) continue;
				if (y < y0) y0 = y;
				if (y > y1) y1 = y;
			}
		if (!(x1 >= x0) || !(y1 >= y0)) return null;
		if (alike(x0, x1)) {
			x0 = this.logX ? x0 / 2 : x0 - 1;
			x1 = this.logX ? x1 * 2 : x1 + 1;
		}
		if (this.logY) {
			if (alike(y0, y1)) {
				y0 /= 2;
				y1 *= 2;
			}
			const pad = (y1 / y0) ** 0.05;
			y0 /= pad;
			y1 *= pad;
		} else {
			if (this.percent) {
				y0 = Math.max(0, y0 - 0.02);
				y1 = Math.min(1.005, y1 + 0.02);
			} else if (y0 > 0 && y0 < 0.35 * y1) y0 = 0;
			if (alike(y0, y1)) {
				const room = Math.abs(y0) / 2 || 0.5;
				y0 -= room;
				y1 += room;
			}
			const pad = this.percent ? 0 : (y1 - y0) * 0.05;
			y1 += pad;
			if (y0 !== 0) y0 -= pad;
		}
		return { x0, x1, y0, y1 };
	}

	scales(r, width) {
		const f = (v, lo, hi, log) =>
			log ? (Math.log(v) - Math.log(lo)) / (Math.log(hi) - Math.log(lo)) : (v - lo) / (hi - lo);
		const w = width - LEFT - RIGHT,
			hgt = HEIGHT - TOP - BOTTOM;
		return {
			x: (v) => LEFT + w * f(v, r.x0, r.x1, this.logX),
			y: (v) => TOP + hgt * (1 - f(v, r.y0, r.y1, this.logY)),
			back: (px) => {
				const t = (px - LEFT) / w;
				return this.logX ? r.x0 * (r.x1 / r.x0) ** t : r.x0 + t * (r.x1 - r.x0);
			},
		};
	}

	line(ctx, s, y, scale, width) {
		ctx.beginPath();
		let pen = false,
			lastX = -1,
			lo = 0,
			hi = 0,
			lastY = 0;
		for (let i = 0; i < s.x.length; i++) {
			// of many points in one pixel: the lowest and the highest
			if (!Number.isFinite(y[i]) || (this.logY && y[i] <= 0) || (this.logX && s.x[i] <= 0)) {
				pen = false;
				continue;
			}
			const px = scale.x(s.x[i]),
				py = scale.y(y[i]);
			if (px < LEFT - 400 || px > width + 400) {
				pen = false;
				continue;
			}
			if (!pen) {
				ctx.moveTo(px, py);
				pen = true;
			} else if (px - lastX < 0.4) {
				lo = Math.min(lo, py);
				hi = Math.max(hi, py);
				lastY = py;
				continue;
			} else {
				if (hi > lo) {
					ctx.lineTo(lastX, lo);
					ctx.lineTo(lastX, hi);
					ctx.lineTo(lastX, lastY);
				}
				ctx.lineTo(px, py);
			}
			lastX = px;
			lo = hi = lastY = py;
		}
		ctx.stroke();
	}

	render(ctx, width, colours) {
		const r = this.range();
		ctx.fillStyle = colours.card;
		ctx.fillRect(0, 0, width, HEIGHT);
		ctx.font = '12px system-ui, "DejaVu Sans", sans-serif';
		if (!r) {
			ctx.fillStyle = colours.soft;
			ctx.textAlign = "center";
			ctx.fillText("no values yet", width / 2, HEIGHT / 2);
			return null;
		}
		const scale = this.scales(r, width),
			most = Math.max(4, Math.floor(width / 90)),
			text = (v) => (this.percent ? num(100 * v, 3) + " %" : num(v, 3));
		ctx.lineWidth = 1;
		ctx.strokeStyle = colours.grid;
		ctx.fillStyle = colours.soft;
		ctx.textAlign = "right";
		for (const v of ticks(r.y0, r.y1, this.logY, 5)) {
			const py = Math.round(scale.y(v)) + 0.5;
			ctx.beginPath();
			ctx.moveTo(LEFT, py);
			ctx.lineTo(width - RIGHT, py);
			ctx.stroke();
			ctx.fillText(text(v), LEFT - 6, py + 4);
		}
		ctx.textAlign = "center";
		for (const v of ticks(r.x0, r.x1, this.logX, most)) {
			const px = Math.round(scale.x(v)) + 0.5;
			ctx.beginPath();
			ctx.moveTo(px, HEIGHT - BOTTOM);
			ctx.lineTo(px, HEIGHT - BOTTOM + 4);
			ctx.stroke();
			ctx.fillText(num(v, 3), px, HEIGHT - BOTTOM + 17);
		}
		ctx.textAlign = "right";
		ctx.fillText(this.xTitle, width - RIGHT, HEIGHT - 3);
		ctx.strokeStyle = colours.line;
		ctx.beginPath();
		ctx.moveTo(LEFT + 0.5, TOP);
		ctx.lineTo(LEFT + 0.5, HEIGHT - BOTTOM + 0.5);
		ctx.lineTo(width - RIGHT, HEIGHT - BOTTOM + 0.5);
		ctx.stroke();
		ctx.save();
		ctx.beginPath();
		ctx.rect(LEFT, TOP - 2, width - LEFT - RIGHT, HEIGHT - TOP - BOTTOM + 4);
		ctx.clip();
		for (const s of this.series) {
			ctx.strokeStyle = s.colour;
			ctx.setLineDash(s.dash ?? []);
			if (this.smoothing) {
				ctx.globalAlpha = 0.25;
				ctx.lineWidth = 1;
				this.line(ctx, s, s.y, scale, width);
				ctx.globalAlpha = 1;
			}
			if (s.points) continue;
			ctx.lineWidth = 1.8;
			this.line(ctx, s, smooth(s.y, this.smoothing), scale, width);
			if (s.x.length === 1) {
				ctx.fillStyle = s.colour;
				ctx.fillRect(scale.x(s.x[0]) - 2, scale.y(s.y[0]) - 2, 4, 4);
			}
		}
		ctx.setLineDash([]);
		ctx.restore();
		for (const s of this.series) if (s.points) this.dots(ctx, s, r, scale);
		return { r, scale };
	}

	// Not clipped: half of a point at the edge would be lost.
	dots(ctx, s, r, scale) {
		ctx.fillStyle = s.colour;
		for (let i = 0; i < s.x.length; i++) {
			const inside = s.x[i] >= r.x0 && s.x[i] <= r.x1 && s.y[i] >= r.y0 && s.y[i] <= r.y1;
			if (!inside) continue;
			ctx.beginPath();
			ctx.arc(scale.x(s.x[i]), scale.y(s.y[i]), 4, 0, 7);
			ctx.fill();
		}
	}

	colours() {
		return {
			card: css("--card"),
			soft: css("--soft"),
			grid: css("--grid"),
			line: css("--line"),
			ink: css("--ink"),
		};
	}

	paint() {
		if (!this.box.isConnected) return;
		const [ctx, width] = fit(this.canvas, HEIGHT),
			colours = this.colours();
		const drawn = this.render(ctx, width, colours);
		const last = this.series.map((s) => `${s.name} ${num(s.y.at(-1))}`).join(", ");
		this.canvas.setAttribute("aria-label", `${this.title} by ${this.xTitle}: ${last || "no values yet"}`);
		this.tip.hidden = true;
		this.legendBox?.replaceChildren(
			...this.series.map((s) => h("span", {}, swatch(s.colour), s.name)),
		);
		if (!drawn) return;
		if (this.drag && this.drag.to !== undefined) {
			ctx.fillStyle = colours.ink;
			ctx.globalAlpha = 0.1;
			ctx.fillRect(
				Math.min(this.drag.from, this.drag.to),
				TOP,
				Math.abs(this.drag.to - this.drag.from),
				HEIGHT - TOP - BOTTOM,
			);
			ctx.globalAlpha = 1;
		} else if (this.pointer !== undefined) this.cross(ctx, width, drawn, colours);
	}

	cross(ctx, width, { scale }, colours) {
		const at = scale.back(this.pointer);
		const rows = [];
		let snapped = null;
		for (const s of this.series) {
			let lo = 0,
				hi = s.x.length - 1;
			if (hi < 0) continue;
			while (hi - lo > 1) {
				const m = (lo + hi) >> 1;
				if (s.x[m] < at) lo = m;
				else hi = m;
			}
			const i = Math.abs(s.x[lo] - at) < Math.abs(s.x[hi] - at) ? lo : hi;
			if (snapped === null) snapped = s.x[i];
			rows.push([s, s.x[i], s.y[i]]);
		}
		if (snapped === null) return;
		const px = scale.x(snapped);
		ctx.strokeStyle = colours.soft;
		ctx.lineWidth = 1;
		ctx.beginPath();
		ctx.moveTo(px, TOP);
		ctx.lineTo(px, HEIGHT - BOTTOM);
		ctx.stroke();
		for (const [s, x, y] of rows) {
			if (!Number.isFinite(y) || (this.logY && y <= 0)) continue;
			ctx.fillStyle = s.colour;
			ctx.beginPath();
			ctx.arc(scale.x(x), scale.y(y), 3.5, 0, 7);
			ctx.fill();
		}
		this.tip.replaceChildren(
			h("b", {}, `${this.xTitle} ${num(snapped)}`),
			...rows
				.slice(0, 12)
				.map(([s, , y]) =>
					h(
						"div",
						{},
						swatch(s.colour),
						`${s.name}  `,
						h("b", {}, this.percent ? num(100 * y) + " %" : num(y)),
					),
				),
		);
		this.tip.hidden = false;
		const left = px + 12 + this.tip.offsetWidth < width ? px + 12 : px - 12 - this.tip.offsetWidth;
		this.tip.style.left = `${Math.max(0, left)}px`;
		this.tip.style.top = `${TOP}px`;
	}

	zoomBy(factor, centre) {
		const r = this.range();
		if (!r) return;
		const t = this.logX ? Math.log : (v) => v,
			back = this.logX ? Math.exp : (v) => v;
		const c = t(centre ?? back((t(r.x0) + t(r.x1)) / 2)),
			a = t(r.x0),
			b = t(r.x1);
		this.zoom = [back(c - (c - a) * factor), back(c + (b - c) * factor)];
		this.draw();
	}

	move(part) {
		const r = this.range();
		if (!r) return;
		const t = this.logX ? Math.log : (v) => v,
			back = this.logX ? Math.exp : (v) => v,
			d = (t(r.x1) - t(r.x0)) * part;
		this.zoom = [back(t(r.x0) + d), back(t(r.x1) + d)];
		this.draw();
	}

	listen() {
		const c = this.canvas,
			at = (e) => e.clientX - c.getBoundingClientRect().left;
		const scale = () => {
			const r = this.range();
			return r && this.scales(r, c.clientWidth);
		};
		c.addEventListener("pointermove", (e) => {
			this.pointer = at(e);
			if (this.drag && Math.abs(this.pointer - this.drag.from) > 4) this.drag.to = this.pointer;
			this.draw();
		});
		c.addEventListener("pointerleave", () => {
			this.pointer = undefined;
			this.draw();
		});
		c.addEventListener("pointerdown", (e) => {
			this.drag = { from: at(e) };
			c.setPointerCapture(e.pointerId);
		});
		c.addEventListener("pointerup", () => {
			const d = this.drag,
				s = scale();
			this.drag = null;
			if (d && d.to !== undefined && s)
				this.zoom = [s.back(Math.min(d.from, d.to)), s.back(Math.max(d.from, d.to))];
			this.draw();
		});
		c.addEventListener("dblclick", () => {
			this.zoom = null;
			this.draw();
		});
		c.addEventListener(
			"wheel",
			(e) => {
				const s = scale();
				if (!s || !(e.ctrlKey || this.zoom || e.shiftKey)) return; // a page still scrolls over a chart
				e.preventDefault();
				this.zoomBy(e.deltaY > 0 ? 1.2 : 1 / 1.2, s.back(at(e)));
			},
			{ passive: false },
		);
		c.addEventListener("keydown", (e) => {
			const keys = {
				ArrowLeft: () => this.move(-0.15),
				ArrowRight: () => this.move(0.15),
				"+": () => this.zoomBy(0.7),
				"=": () => this.zoomBy(0.7),
				"-": () => this.zoomBy(1 / 0.7),
				0: () => {
					this.zoom = null;
					this.draw();
				},
			};
			if (!keys[e.key]) return;
			keys[e.key]();
			e.preventDefault();
		});
	}

	svg() {
		const width = 720,
			ctx = new SvgContext(width, HEIGHT + 22 * Math.ceil(this.series.length / 3));
		const colours = this.colours();
		this.render(ctx, width, colours);
		this.series.forEach((s, i) => {
			const x = LEFT + (i % 3) * 220,
				y = HEIGHT + 14 + 22 * Math.floor(i / 3);
			ctx.fillStyle = s.colour;
			ctx.fillRect(x, y - 8, 10, 10);
			ctx.fillStyle = colours.ink;
			ctx.textAlign = "left";
			ctx.fillText(s.name, x + 15, y + 1);
		});
		return ctx.text();
	}

	csv() {
		const quote = (s) => (/[",\n]/.test(s) ? `"${s.replaceAll('"', '""')}"` : s);
		const rows = new Map();
		this.series.forEach((s, k) =>
			s.x.forEach((x, i) => {
				if (!rows.has(x)) rows.set(x, new Array(this.series.length).fill(""));
				rows.get(x)[k] = Number.isFinite(s.y[i]) ? s.y[i] : "";
			}),
		);
		const head = [this.xTitle, ...this.series.map((s) => quote(s.name))].join(",");
		return (
			[head, ...[...rows].sort((a, b) => a[0] - b[0]).map(([x, ys]) => [x, ...ys].join(","))].join("\n") + "\n"
		);
	}
}
