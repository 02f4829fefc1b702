// SPDX-License-Identifier: MIT
// A diagram with cycles across, which is moved and zoomed: by dragging, the wheel, keys and buttons.
import { h, css, num, fit, later } from "./dom.js";

export const LABEL = 74, // pixels of the names of rows
	TOP = 20; // of the axis
const LARGEST = 60; // pixels of a cycle

// A subclass has `cycles` (all there are), `height`, rows(ctx, width) that draws them, found(px, py) -> what is under
// the pointer, tipOf(what) -> children of the tip, and describe() -> what a screen reader says.
export class Panned {
	constructor() {
		this.canvas = h("canvas", { tabIndex: 0, role: "img" });
		this.tip = h("div", { className: "tip", hidden: true });
		this.box = h("div", { className: "chart" }, this.canvas, this.tip);
		this.canvas.style.height = "60px"; // until there is something to draw
		this.cycles = 0;
		this.from = 0; // first cycle shown
		this.scale = 1; // pixels of a cycle
		this.whole = true; // all cycles are shown, also when the width changes
		this.draw = later(() => this.paint());
		this.listen();
		new ResizeObserver(() => {
			if (!this.cycles) return;
			if (this.whole) this.all();
			this.clamp();
			this.draw();
		}).observe(this.box);
	}

	width() {
		return Math.max(50, this.box.clientWidth - LABEL);
	}
	x(cycle) {
		return LABEL + (cycle - this.from) * this.scale;
	}
	all() {
		this.whole = true;
		this.from = 0;
		this.scale = this.width() / this.cycles;
		this.draw();
	}
	clamp() {
		this.scale = Math.max(this.width() / this.cycles, Math.min(LARGEST, this.scale));
		this.from = Math.max(0, Math.min(this.cycles - this.width() / this.scale, this.from));
	}
	zoom(factor, px = this.width() / 2) {
		const at = this.from + px / this.scale;
		this.scale = Math.max(this.width() / this.cycles, Math.min(LARGEST, this.scale * factor));
		this.from = at - px / this.scale;
		this.whole = false;
		this.clamp();
		this.draw();
	}
	pan(cycles) {
		this.from += cycles;
		this.clamp();
		this.draw();
	}

	paint() {
		if (!this.cycles || !this.box.isConnected) return;
		const [ctx, width] = fit(this.canvas, this.height);
		ctx.clearRect(0, 0, width, this.height);
		ctx.font = '12px system-ui, "DejaVu Sans", sans-serif';
		this.axis(ctx, width);
		this.rows(ctx, width);
		this.canvas.setAttribute(
			"aria-label",
			`${this.describe()}; shown from cycle ${num(Math.round(this.from))} to ` +
				num(Math.round(this.from + this.width() / this.scale)),
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
		for (let c = Math.ceil(this.from / step) * step; this.x(c) < width; c += step) {
			const half = ctx.measureText(num(c)).width / 2;
			ctx.textAlign = this.x(c) + half > width ? "right" : "center";
			ctx.fillText(num(c), Math.min(this.x(c), width), 12);
		}
		ctx.textAlign = "right";
		ctx.fillText("cycle", LABEL - 8, 12);
	}

	// A row's name and ground.
	row(ctx, width, name, y, height) {
		ctx.fillStyle = css("--grid");
		ctx.fillRect(LABEL, y, width - LABEL, height);
		ctx.fillStyle = css("--soft");
		ctx.textAlign = "right";
		ctx.fillText(name, LABEL - 8, y + height / 2 + 4);
	}

	// Draws beside the names only.
	clipped(ctx, width, draw) {
		ctx.save();
		ctx.beginPath();
		ctx.rect(LABEL, 0, width - LABEL, this.height);
		ctx.clip();
		draw();
		ctx.restore();
	}

	hover(px, py) {
		if (!this.cycles) return;
		this.cycle = Math.max(0, Math.min(this.cycles - 1, Math.floor(this.from + (px - LABEL) / this.scale)));
		this.hovered = px < LABEL ? null : this.found(px, py);
		this.tip.hidden = !this.hovered;
		if (this.hovered) {
			this.tip.replaceChildren(...this.tipOf(this.hovered).filter(Boolean));
			const w = this.tip.offsetWidth,
				wide = this.box.clientWidth;
			this.tip.style.left = `${px + 16 + w < wide ? px + 16 : Math.max(0, px - 16 - w)}px`;
			this.tip.style.top = `${py + 14}px`;
		}
		this.draw();
	}

	listen() {
		const c = this.canvas;
		const place = (e) => {
			const box = c.getBoundingClientRect();
			return [e.clientX - box.left, e.clientY - box.top];
		};
		c.addEventListener("pointermove", (e) => {
			if (!this.dragged) {
				this.hover(...place(e));
				return;
			}
			this.from = this.dragged.from - (e.clientX - this.dragged.x) / this.scale;
			this.clamp();
			this.tip.hidden = true;
			this.draw();
		});
		c.addEventListener("pointerdown", (e) => {
			this.dragged = { x: e.clientX, from: this.from };
			c.setPointerCapture(e.pointerId);
		});
		for (const end of ["pointerup", "pointercancel"])
			c.addEventListener(end, () => {
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
				if (!this.cycles || (document.activeElement !== c && !e.ctrlKey)) return;
				e.preventDefault();
				if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY))
					this.pan((e.deltaX || e.deltaY) / this.scale);
				else this.zoom(e.deltaY > 0 ? 1 / 1.25 : 1.25, place(e)[0] - LABEL);
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
			if (!keys[e.key] || !this.cycles) return;
			keys[e.key]();
			e.preventDefault();
		});
	}

	// Buttons that do what wheel and keys do.
	tools() {
		const tool = (text, label, fn) =>
			h(
				"button",
				{
					type: "button",
					"aria-label": label,
					title: label,
					onclick: () => {
						if (this.cycles) fn();
					},
				},
				text,
			);
		return [
			tool("+", "zoom in", () => this.zoom(1.6)),
			tool("−", "zoom out", () => this.zoom(1 / 1.6)),
			tool("all", "show all cycles", () => this.all()),
		];
	}
}
