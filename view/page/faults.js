// SPDX-License-Identifier: MIT
// Faults of the machine, put in by a click, and what the diagnosis finds of them.
import { h, card, choice, swatch, getJson, note } from "./dom.js";
import { Grid } from "./grid.js";

const SIDE = 24, // ports of a crossbar; crossbars of a stage
	PROCESSORS = 566,
	MOST = 16;
const stages = ["input", "middle", "output"];
// What a click on a processor puts in.
const kinds = {
	dead: (i) => `dead:${i}`,
	stuck: (i) => `stuck:${i}:sram:1200:3`,
	alu: (i) => `alu:${i}:0.01`,
	port: (i) => `port:${i}`,
};
// Cells of the grids: blue is above 0, red below.
const NONE = 0,
	THERE = 0.45,
	FOUND = 1,
	MISSED = -1,
	REFUSED = -0.5;

export class Faults {
	constructor() {
		this.faults = new Set(["stuck:77:sram:1200:3", "link:input:3:5"]);
		this.report = null;
		this.kind = choice("kind of fault", Object.keys(kinds), "dead");
		this.typed = h("input", { placeholder: "link:input:3:5", size: 22, "aria-label": "a fault to put in" });
		this.chips = h("div", { className: "bar" });
		this.found = h("div", { role: "status" });
		this.processors = new Grid({
			label: "processors",
			least: 10,
			most: 15,
			ground: "--grid",
			tip: (r, c) => this.processorTip(SIDE * r + c),
			onpick: (r, c) => this.toggleProcessor(SIDE * r + c),
		});
		this.crossbars = new Grid({
			label: "crossbars of the switch",
			least: 10,
			most: 15,
			ground: "--grid",
			tip: (r, c) => `${stages[r]} crossbar ${c}: click to break it`,
			onpick: (r, c) => this.toggle(`crossbar:${stages[r]}:${c}`),
		});
		this.button = h(
			"button",
			{ type: "button", className: "main", onclick: () => this.diagnose() },
			"Diagnose",
		);
		const key = (colour, text) => h("span", {}, swatch(colour), text);
		this.element = card(
			"Faults",
			h(
				"p",
				{ className: "small soft" },
				"Put faults in by a click; the diagnosis that runs before training finds them and trains around them.",
			),
			h("div", { className: "bar" }, h("label", {}, "a click on a processor makes it ", this.kind)),
			h("h3", {}, "Processors"),
			this.processors.element,
			h("h3", {}, "Crossbars: input, middle and output stage"),
			this.crossbars.element,
			h(
				"div",
				{ className: "bar small soft" },
				key("color-mix(in srgb, var(--plus) 45%, var(--grid))", "put in"),
				key("var(--plus)", "found"),
				key("var(--minus)", "missed"),
				key("color-mix(in srgb, var(--minus) 50%, var(--grid))", "refused besides"),
			),
			h(
				"form",
				{
					className: "bar",
					onsubmit: (e) => {
						e.preventDefault();
						const fault = this.typed.value.trim();
						if (fault) this.toggle(fault);
						this.typed.value = "";
					},
				},
				this.typed,
				h("button", {}, "Add"),
				this.button,
			),
			this.chips,
			this.found,
		);
		this.show();
	}

	ofProcessor(i) {
		return [...this.faults].find((f) => new RegExp(`^(dead|alu|port|stuck):${i}(:|$)`).test(f));
	}
	processorTip(i) {
		if (i >= PROCESSORS) return `port ${i}: of the disks`;
		const f = this.ofProcessor(i);
		const refused = this.report?.refused.includes(i) ? ", refused by the diagnosis" : "";
		return `processor ${i}${f ? `: ${f}` : ""}${refused}`;
	}
	toggleProcessor(i) {
		if (i < PROCESSORS) this.toggle(this.ofProcessor(i) ?? kinds[this.kind.value](i));
	}
	toggle(f) {
		if (this.faults.has(f)) this.faults.delete(f);
		else if (this.faults.size < MOST) this.faults.add(f);
		else note(`${MOST} faults at most`);
		this.report = null;
		this.found.replaceChildren();
		this.show();
	}

	outcome(f) {
		const r = this.report?.faults.find((o) => o.fault === f || o.fault.startsWith(`${f}:`));
		return r ? (r.found ? FOUND : MISSED) : THERE;
	}
	processorCell(i) {
		if (i >= PROCESSORS) return NaN;
		const f = this.ofProcessor(i);
		return f ? this.outcome(f) : this.report?.refused.includes(i) ? REFUSED : NONE;
	}
	crossbarCell(stage, i) {
		const f = `crossbar:${stage}:${i}`;
		return this.faults.has(f) ? this.outcome(f) : NONE;
	}

	show() {
		const cells = (n, cell) => Array.from({ length: n }, (_, i) => cell(i));
		this.processors.set(
			SIDE,
			SIDE,
			cells(SIDE * SIDE, (i) => this.processorCell(i)),
			1,
		);
		this.crossbars.set(
			stages.length,
			SIDE,
			stages.flatMap((s) => cells(SIDE, (i) => this.crossbarCell(s, i))),
			1,
		);
		this.chips.replaceChildren(
			...[...this.faults].map((f) =>
				h(
					"button",
					{
						type: "button",
						title: "take it out",
						"aria-label": `take out ${f}`,
						onclick: () => this.toggle(f),
					},
					`${f} ×`,
				),
			),
		);
		this.button.disabled = this.faults.size === 0;
	}

	async diagnose() {
		this.button.disabled = true;
		this.found.replaceChildren(h("p", {}, "Testing memories, switch and processors…"));
		try {
			const faults = [...this.faults].join(",");
			const report = await getJson("/api/gf11", { do: "diagnose", faults });
			if (faults !== [...this.faults].join(",")) return; // others by now
			this.report = report;
			this.found.replaceChildren(
				h(
					"p",
					{},
					h("b", {}, `${report.detected} of ${report.injected} found`),
					`, ${report.missed} missed, ${report.false_alarms} false alarms; `,
					`${report.approved} processors approved.`,
				),
				h("table", {}, h("tbody", {}, report.faults.map(faultRow))),
			);
		} catch (e) {
			this.found.replaceChildren(h("p", {}, e.message));
		}
		this.show();
	}

	draw() {
		this.processors.draw();
		this.crossbars.draw();
	}
}

const faultRow = (f) =>
	h(
		"tr",
		{},
		h("td", {}, f.found ? "✓" : f.changes ? "✗" : "–"),
		h("td", { className: "mono" }, f.fault),
		h("td", {}, f.found ? "found" : f.changes ? "missed" : "changes no result"),
	);
