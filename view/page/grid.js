// SPDX-License-Identifier: MIT
// Matrices on a canvas: Hinton diagrams (area and colour are the weight) and heat maps, with values under the pointer.
import { h, css, num, later } from "./dom.js";

// The number of columns in which n values are best seen as an image: a square, or a factor near one.
export function columnsFor(n) {
	const root = Math.sqrt(n);
	if (Number.isInteger(root)) return root;
	for (let c = Math.ceil(root); c <= Math.min(n, root * 3.5); c++) if (n % c === 0) return c;
	return n <= 40 ? n : 32;
}

const NAMED = 9; // pixels of a cell that can have a name

const mix = (a, b, t) => a.map((v, i) => Math.round(v + (b[i] - v) * t));
function rgb(name) {
	const hex = css(name).slice(1),
		wide = hex.length === 3 ? [...hex].map((c) => c + c).join("") : hex;
	return [0, 2, 4].map((i) => parseInt(wide.slice(i, i + 2), 16));
}

// options: label, tip(row, column, value) -> text, onpick(row, column), squares (Hinton), least and most (CSS pixels of
// a cell); names: of rows and columns, shown where there is room for them
export class Grid {
	constructor(options) {
		Object.assign(this, { least: 4, most: 22, label: "matrix" }, options);
		this.rows = this.columns = this.margin = 0;
		this.values = [];
		this.canvas = h("canvas", { className: "plain", role: "img", tabIndex: this.onpick ? 0 : -1 });
		this.tipBox = h("div", { className: "tip", hidden: true });
		this.inner = h("div", { className: "chart" }, this.canvas, this.tipBox);
		this.element = h("div", { className: "scroll" }, this.inner);
		this.draw = later(() => this.paint());
		this.at = [0, 0];
		const cell = (e) => {
			const box = this.canvas.getBoundingClientRect();
			return [
				Math.floor((e.clientY - box.top - this.margin) / this.size),
				Math.floor((e.clientX - box.left - this.margin) / this.size),
			];
		};
		this.canvas.addEventListener("pointermove", (e) => this.hover(...cell(e)));
		this.canvas.addEventListener("pointerleave", () => {
			this.tipBox.hidden = true;
		});
		if (this.onpick) {
			this.canvas.style.cursor = "pointer";
			this.canvas.addEventListener("click", (e) => {
				const [r, c] = cell(e);
				if (this.index(r, c) >= 0) {
					this.at = [r, c];
					this.onpick(r, c);
				}
			});
			this.canvas.addEventListener("keydown", (e) => {
				const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[e.key];
				if (step) {
					this.at = [
						Math.max(0, Math.min(this.rows - 1, this.at[0] + step[0])),
						Math.max(0, Math.min(this.columns - 1, this.at[1] + step[1])),
					];
					this.hover(...this.at);
				} else if (e.key === "Enter" || e.key === " ") this.onpick(...this.at);
				else return;
				e.preventDefault();
			});
		}
		new ResizeObserver(() => this.draw()).observe(this.element);
	}

	set(rows, columns, values, max) {
		Object.assign(this, { rows, columns, values });
		this.max = max ?? values.reduce((m, v) => (Number.isFinite(v) && Math.abs(v) > m ? Math.abs(v) : m), 0);
		this.draw();
	}

	index(r, c) {
		const i = r * this.columns + c;
		return r >= 0 && c >= 0 && r < this.rows && c < this.columns && i < this.values.length ? i : -1;
	}

	hover(r, c) {
		const i = this.index(r, c);
		this.tipBox.hidden = i < 0 || !this.tip;
		if (this.tipBox.hidden) return;
		this.tipBox.textContent = this.tip(r, c, this.values[i]);
		const right = this.margin + (c + 1) * this.size + 8,
			wide = this.element.clientWidth + this.element.scrollLeft;
		const left = Math.max(0, this.margin + c * this.size - 8 - this.tipBox.offsetWidth);
		this.tipBox.style.left = `${right + this.tipBox.offsetWidth < wide ? right : left}px`;
		this.tipBox.style.top = `${Math.max(0, this.margin + r * this.size - 4)}px`;
	}

	paint() {
		if (!this.element.isConnected || !this.rows) return;
		const ratio = devicePixelRatio || 1,
			room = this.element.clientWidth;
		const longest = (this.names ?? []).reduce((n, name) => Math.max(n, name.length), 0),
			margin = Math.min(90, 8 + 7 * longest);
		let size = Math.min(this.most, Math.floor((room - margin) / this.columns));
		this.margin = this.names && size >= NAMED ? margin : 0;
		if (!this.margin) size = Math.min(this.most, Math.floor(room / this.columns));
		this.size = size = Math.max(this.least, size);
		const width = this.margin + this.columns * size,
			height = this.margin + this.rows * size,
			c = this.canvas;
		c.width = width * ratio;
		c.height = height * ratio;
		c.style.width = `${width}px`;
		c.style.height = `${height}px`;
		const ctx = c.getContext("2d");
		ctx.scale(ratio, ratio);
		const plus = rgb("--plus"),
			minus = rgb("--minus"),
			ground = rgb(this.ground ?? (this.squares ? "--grid" : "--card"));
		if (this.margin) this.paintNames(ctx);
		ctx.translate(this.margin, this.margin);
		ctx.fillStyle = css(this.ground ? "--card" : "--grid");
		ctx.fillRect(0, 0, this.columns * size, this.rows * size);
		const gap = size >= 8 ? 1 : 0;
		for (let i = 0; i < this.values.length; i++) {
			const v = this.values[i],
				x = (i % this.columns) * size,
				y = Math.floor(i / this.columns) * size;
			if (!Number.isFinite(v)) continue;
			const t = this.max ? Math.min(1, Math.abs(v) / this.max) : 0,
				tint = v < 0 ? minus : plus;
			if (this.squares) {
				const side = Math.sqrt(t) * (size - gap),
					off = (size - side) / 2;
				ctx.fillStyle = `rgb(${tint})`;
				ctx.fillRect(x + off, y + off, side, side);
			} else {
				ctx.fillStyle = `rgb(${mix(ground, tint, this.dim ? Math.sqrt(t) : t)})`;
				ctx.fillRect(x, y, size - gap, size - gap);
			}
		}
		if (this.marks) {
			ctx.strokeStyle = css("--ink");
			for (const i of this.marks)
				ctx.strokeRect(
					(i % this.columns) * size + 0.5,
					Math.floor(i / this.columns) * size + 0.5,
					size - 1 - gap,
					size - 1 - gap,
				);
		}
		c.setAttribute("aria-label", `${this.label}: ${this.rows} rows of ${this.columns}, largest ${num(this.max)}`);
	}

	paintNames(ctx) {
		const { margin, size } = this;
		ctx.fillStyle = css("--soft");
		ctx.font = `${Math.min(12, size)}px system-ui, sans-serif`;
		ctx.textBaseline = "middle";
		this.names.forEach((name, i) => {
			const at = margin + (i + 0.5) * size;
			ctx.textAlign = "right";
			ctx.fillText(name, margin - 5, at, margin - 6);
			ctx.save();
			ctx.translate(at, margin - 5);
			ctx.rotate(-Math.PI / 2);
			ctx.textAlign = "left";
			ctx.fillText(name, 0, 0, margin - 6);
			ctx.restore();
		});
	}
}
