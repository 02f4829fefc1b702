// SPDX-License-Identifier: MIT
// The switch: three stages of crossbars, and the way of every word through them.
import { h, css, num, card, choice, fit, getJson, later, note } from "./dom.js";

const BOX = 20,
	GAP = 4,
	WIDE = 46,
	TOP = 24;

class Crossbars {
	constructor() {
		this.canvas = h("canvas", { className: "plain", role: "img" });
		this.tip = h("div", { className: "tip", hidden: true });
		this.box = h("div", { className: "chart" }, this.canvas, this.tip);
		this.draw = later(() => this.paint());
		this.canvas.addEventListener("pointermove", (e) => {
			const b = this.canvas.getBoundingClientRect(),
				px = e.clientX - b.left,
				py = e.clientY - b.top;
			const stage = this.stages ? this.stages.findIndex((x) => px >= x && px <= x + WIDE) : -1,
				box = Math.floor((py - TOP) / (BOX + GAP));
			this.over = stage >= 0 && box >= 0 && box < this.n ? [stage, box] : null;
			this.tip.hidden = !this.over;
			if (this.over) {
				const name = ["input", "middle", "output"][stage];
				this.tip.textContent = `${name} crossbar ${box}: ${num(this.routes().length)} words pass`;
				this.tip.style.left = `${Math.min(px + 12, b.width - 240)}px`;
				this.tip.style.top = `${py + 12}px`;
			}
			this.draw();
		});
		this.canvas.addEventListener("pointerleave", () => {
			this.over = null;
			this.tip.hidden = true;
			this.draw();
		});
		new ResizeObserver(() => this.draw()).observe(this.box);
	}

	set(answer, n = 24) {
		this.n = n;
		this.to = answer.to;
		this.middle = answer.middle;
		this.draw();
	}

	routes() {
		const out = [];
		this.to?.forEach((to, p) => {
			if (to === null) return;
			const i = Math.floor(p / this.n),
				m = this.middle[p],
				o = Math.floor(to / this.n);
			if (!this.over || [i, m, o][this.over[0]] === this.over[1]) out.push([p, i, m, o, to]);
		});
		return out;
	}

	paint() {
		if (!this.to || !this.box.isConnected) return;
		const n = this.n,
			height = TOP + n * (BOX + GAP) + 6,
			[ctx, width] = fit(this.canvas, height);
		ctx.clearRect(0, 0, width, height);
		const first = 30,
			room = width - 2 * first - WIDE;
		this.stages = [first, first + room / 2, first + room];
		const y = (box, k) => TOP + box * (BOX + GAP) + 1.5 + ((k + 0.5) * (BOX - 3)) / n;
		const shown = this.routes();
		ctx.lineWidth = this.over ? 1.2 : 0.7;
		ctx.globalAlpha = this.over ? 0.9 : 0.38;
		for (const [p, i, m, o, to] of shown) {
			ctx.strokeStyle = `hsl(${(i * 360) / n} 65% 52%)`;
			const [a, b, c] = this.stages;
			ctx.beginPath();
			ctx.moveTo(a - first + 4, y(i, p % n));
			ctx.lineTo(a, y(i, p % n));
			ctx.lineTo(a + WIDE, y(i, m));
			ctx.lineTo(b, y(m, i));
			ctx.lineTo(b + WIDE, y(m, o));
			ctx.lineTo(c, y(o, m));
			ctx.lineTo(c + WIDE, y(o, to % n));
			ctx.lineTo(width - 4, y(o, to % n));
			ctx.stroke();
		}
		ctx.globalAlpha = 1;
		ctx.lineWidth = 1;
		ctx.font = '12px system-ui, "DejaVu Sans", sans-serif';
		ctx.textAlign = "center";
		ctx.fillStyle = css("--soft");
		["input stage", "middle stage", "output stage"].forEach((t, s) =>
			ctx.fillText(t, this.stages[s] + WIDE / 2, 14),
		);
		for (let s = 0; s < 3; s++)
			for (let k = 0; k < n; k++) {
				const on = this.over && this.over[0] === s && this.over[1] === k;
				ctx.strokeStyle = on ? css("--accent") : css("--soft");
				ctx.lineWidth = on ? 2 : 1;
				ctx.strokeRect(this.stages[s] + 0.5, TOP + k * (BOX + GAP) + 0.5, WIDE - 1, BOX - 1);
			}
		this.canvas.setAttribute(
			"aria-label",
			`the switch: ${shown.length} routes through three stages of ${n} crossbars`,
		);
	}
}

const last = { ring: 0, tree: 9, halving: 8, random: 9 }; // steps
const says = {
	ring: () => "Every processor sends to the next one, in every step; after 565 steps each has the sum of all.",
	tree: (k) => `Step ${k}: processor i sends to i + ${2 ** k}; after ten steps each has the sum of all.`,
	halving: (k) => `Step ${k}: partners at distance ${256 >> k} exchange halves of their sums; 512 processors.`,
	random: (k) => `Random permutation ${k}: every port sends, and the router finds a way for each.`,
};

// The card: sums stepped in time.
export class Switch {
	constructor() {
		this.crossbars = new Crossbars();
		this.kind = choice("permutation", Object.keys(last), "tree", () => {
			this.step.value = 0;
			this.load();
		});
		this.step = h("input", {
			type: "range",
			min: 0,
			max: last.tree,
			value: 0,
			"aria-label": "step",
			oninput: () => this.load(),
		});
		this.button = h(
			"button",
			{ type: "button", "aria-pressed": "false", onclick: () => this.play(!this.timer) },
			"Play",
		);
		this.text = h("p", { className: "small soft", role: "status" });
		this.timer = 0;
		this.element = card(
			"The switch",
			h(
				"div",
				{ className: "bar" },
				h("label", {}, "routes of ", this.kind),
				h("label", {}, "step ", this.step),
				this.button,
			),
			this.text,
			this.crossbars.box,
		);
	}

	async load() {
		const kind = this.kind.value;
		this.step.max = last[kind];
		this.step.disabled = this.button.disabled = last[kind] === 0;
		const step = Number(this.step.value);
		if (last[kind] === 0) this.play(false);
		try {
			const answer = await getJson("/api/gf11", { do: "switch", kind, step });
			if (kind !== this.kind.value || step !== Number(this.step.value)) return; // another by now
			const verified = answer.verified ? ", verified by tokens" : "",
				time = answer.microseconds ? `, set in ${num(answer.microseconds, 3)} microseconds` : "";
			this.text.textContent = `${says[kind](step)} ${num(answer.routes)} routes${time}${verified}.`;
			this.crossbars.set(answer);
		} catch (e) {
			note(e.message);
		}
	}

	play(on) {
		clearInterval(this.timer);
		this.timer = on
			? setInterval(() => {
					this.step.value = (Number(this.step.value) + 1) % (Number(this.step.max) + 1);
					this.load();
				}, 900)
			: 0;
		this.button.setAttribute("aria-pressed", String(on));
	}

	draw() {
		this.crossbars.draw();
	}
}
