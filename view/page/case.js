// SPDX-License-Identifier: MIT
// A case of a network's data: activations of all groups, outputs beside targets, inputs that can be changed.
import { h, num, css, card, fit, getJson, later, note } from "./dom.js";
import { Grid, columnsFor } from "./grid.js";

export class Case {
	constructor() {
		this.number = 0;
		this.changes = new Map(); // of inputs: number -> value
		this.pick = h("input", {
			type: "number",
			min: 0,
			value: 0,
			"aria-label": "case",
			onchange: () => this.show(Number(this.pick.value)),
		});
		this.name = h("b");
		this.guess = h("p", { role: "status" });
		this.groups = h("div");
		this.input = h("input", { type: "number", min: 0, value: 0, "aria-label": "number of the input" });
		this.value = h("input", {
			type: "number",
			step: "any",
			value: 1,
			"aria-label": "value of the input",
			onchange: () => this.typed(),
		});
		this.undo = h("button", { type: "button", onclick: () => this.show(this.number) }, "Undo changes");
		const arrow = (text, label, by) =>
			h("button", { type: "button", "aria-label": label, onclick: () => this.step(by) }, text);
		this.element = card(
			"A case",
			h(
				"div",
				{ className: "bar" },
				h("label", {}, "case ", this.pick),
				arrow("←", "previous case", -1),
				arrow("→", "next case", 1),
				this.name,
			),
			this.guess,
			this.groups,
			h(
				"div",
				{ className: "bar" },
				h("label", {}, "input ", this.input),
				h("label", {}, "= ", this.value),
				this.undo,
			),
		);
	}

	// query: what names the network in a request
	set(net, query, other) {
		Object.assign(this, { net, query });
		if (other) {
			this.number = 0;
			this.changes.clear();
		}
		this.pick.max = Math.max(0, net.cases - 1);
		this.input.max = net.inputs - 1;
		return this.load();
	}
	show(number) {
		this.number = number;
		this.changes.clear();
		return this.load();
	}
	step(by) {
		const most = Math.max(1, this.net.cases);
		return this.show((this.number + by + most) % most);
	}

	async load() {
		const query = { ...this.query, case: this.number };
		if (this.changes.size) query.set = [...this.changes].map(([i, v]) => `${i}:${v}`).join(",");
		try {
			this.answer = await getJson("/api/activations", query);
		} catch (e) {
			note(e.message);
			return;
		}
		const { answer, changes } = this;
		this.pick.value = this.number;
		this.name.textContent = answer.name ?? "";
		this.undo.disabled = changes.size === 0;
		const changed = ` (with ${changes.size} ${changes.size === 1 ? "input" : "inputs"} changed)`;
		this.guess.replaceChildren();
		if (answer.guess !== undefined)
			this.guess.append("The network says ", h("b", { id: "guess" }, answer.guess));
		if (answer.target !== undefined) this.guess.append(", the target is ", h("b", {}, answer.target));
		if (changes.size) this.guess.append(changed);
		this.draw();
	}

	draw() {
		if (!this.answer) return;
		let first = 0; // number of the group's first input
		const boxes = this.answer.groups.map((g) => {
			const about = this.net.groups.find((o) => o.name === g.name),
				isInput = about.role === "input";
			const box = h(
				"div",
				{},
				h(
					"h3",
					{},
					g.name,
					h("span", { className: "soft small" }, `  ${isInput ? "inputs: click to change" : about.function}`),
				),
				about.role === "output" && this.answer.outputs ? this.outputs(g) : this.units(g, isInput ? first : null),
			);
			if (isInput) first += about.units;
			return box;
		});
		this.groups.replaceChildren(...boxes);
	}

	// A group as an image; first: of its inputs, null: it has none
	units(g, first) {
		const columns = columnsFor(g.values.length),
			rows = Math.ceil(g.values.length / columns),
			isInput = first !== null,
			values = isInput ? this.answer.inputs.slice(first, first + g.values.length) : g.values;
		const grid = new Grid({
			label: `activations of ${g.name}`,
			least: 6,
			most: 16,
			tip: (r, c, v) => `${g.name}[${r * columns + c}]: ${num(v)}`,
			onpick: isInput ? (r, c) => this.flip(first + r * columns + c, values[r * columns + c]) : undefined,
		});
		if (isInput)
			grid.marks = [...this.changes.keys()].map((i) => i - first).filter((i) => i >= 0 && i < values.length);
		grid.set(
			rows,
			columns,
			values,
			values.reduce((m, v) => Math.max(m, Math.abs(v)), 1),
		);
		return grid.element;
	}

	outputs(g) {
		const canvas = h("canvas", { className: "plain", role: "img" }),
			box = h("div", { className: "chart" }, canvas),
			targets = this.answer.outputs.length === g.values.length ? this.answer.targets : null;
		const draw = later(() => {
			if (box.isConnected) drawOutputs(canvas, g.values, targets);
		});
		canvas.setAttribute("aria-label", `outputs of ${g.name}: ${g.values.map((v) => num(v, 2)).join(", ")}`);
		new ResizeObserver(draw).observe(box);
		return box;
	}

	// 0 and 1 change places; other values are typed.
	flip(i, now) {
		if (now === undefined) return;
		this.input.value = i;
		this.value.value = now === 0 ? 1 : now === 1 ? 0 : now;
		if (now === 0 || now === 1) this.typed();
		else this.value.focus();
	}
	typed() {
		const i = Number(this.input.value),
			value = Number(this.value.value);
		if (!Number.isInteger(i) || i < 0 || i >= this.net.inputs || !Number.isFinite(value)) return;
		this.changes.set(i, value);
		this.load();
	}
}

function drawOutputs(canvas, values, targets) {
	const [ctx, width] = fit(canvas, 120),
		lo = Math.min(0, ...values),
		hi = Math.max(1, ...values),
		y = (v) => 104 - (92 * (v - lo)) / (hi - lo),
		bar = Math.min(30, (width - 4) / values.length);
	ctx.clearRect(0, 0, width, 120);
	values.forEach((v, i) => {
		ctx.fillStyle = css(v < 0 ? "--minus" : "--plus");
		ctx.fillRect(i * bar + 1, Math.min(y(v), y(0)), Math.max(1, bar - 2), Math.abs(y(v) - y(0)));
		if (targets && targets[i] !== null) {
			ctx.fillStyle = css("--ink");
			ctx.fillRect(i * bar, y(targets[i]) - 1, bar, 2);
		}
	});
	ctx.strokeStyle = css("--line");
	ctx.beginPath();
	ctx.moveTo(0, y(0) + 0.5);
	ctx.lineTo(bar * values.length, y(0) + 0.5);
	ctx.stroke();
	ctx.fillStyle = css("--soft");
	ctx.font = "11px system-ui, sans-serif";
	ctx.fillText(targets ? "bars: outputs, lines: targets" : "outputs", 0, 118);
}
