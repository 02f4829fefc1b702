// SPDX-License-Identifier: MIT
// The machine of 1989: its parameters, and all that follows when one of them moves.
import { h, num, getJson, getText, note, card, choice } from "./dom.js";
import { Epoch } from "./epoch.js";
import { Faults } from "./faults.js";
import { Figure, Table1 } from "./report.js";
import { parse, Schedule } from "./schedule.js";
import { Switch } from "./switch.js";

// Parameters that can be moved: least and most.
const sliders = {
	"alu-latency": [1, 60],
	"sram-latency": [1, 20],
	"dram-interval": [1, 16],
	"dram-latency": [1, 60],
	"switch-interval": [1, 16],
	"switch-latency": [1, 60],
	"host-call": [0, 1000],
	clock: [5, 100],
};
const LINES = 24; // of microcode that are shown

// The network, the compiler and the parameters of the machine.
class Parameters {
	constructor(known, onchange) {
		this.known = known;
		this.changed = new Map(); // parameters that are not those of 1989
		this.onchange = onchange;
		this.layers = h("input", {
			value: "203-60-26",
			size: 12,
			"aria-label": "layers of the network",
			pattern: "[0-9]+(-[0-9]+)+",
			onchange,
		});
		this.procs = h("input", {
			type: "range",
			min: 1,
			max: 566,
			value: 512,
			"aria-label": "processors",
			oninput: () => {
				this.procsText.textContent = this.procs.value;
			},
			onchange,
		});
		this.procsText = h("output", { className: "mono" }, "512");
		this.sum = choice("summation", ["tree", "ring", "halving", "pipelined"], "tree", onchange);
		this.compiler = choice("compiler", ["1989", "best"], "1989", onchange);
		const rows = Object.keys(sliders).map((name) => this.slider(name));
		this.reset = h(
			"button",
			{
				type: "button",
				disabled: true,
				onclick: () => {
					this.changed.clear();
					for (const r of rows) r.reset();
					onchange();
				},
			},
			"As in 1989",
		);
		this.element = h(
			"section",
			{ className: "card", "aria-label": "Machine" },
			h("h1", {}, "The GF11"),
			h(
				"p",
				{ className: "soft" },
				"566 processors of 1989, simulated cycle by cycle. Move a parameter: everything below follows.",
			),
			h(
				"div",
				{ className: "bar" },
				h("label", {}, "network ", this.layers),
				h("label", {}, "sum ", this.sum),
				h("label", {}, "compiler ", this.compiler),
			),
			h("div", { className: "bar" }, h("label", {}, "processors ", this.procs, this.procsText), this.reset),
			h(
				"table",
				{ className: "sliders" },
				h(
					"tbody",
					{},
					rows.map((r) => r.element),
				),
			),
		);
	}

	slider(name) {
		const p = this.known[name],
			out = h("output", { className: "mono" });
		const input = h("input", {
			type: "range",
			min: sliders[name][0],
			max: sliders[name][1],
			value: p.value,
			"aria-label": name,
			oninput: () => say(),
			onchange: () => {
				if (Number(input.value) === p.value) this.changed.delete(name);
				else this.changed.set(name, input.value);
				this.onchange();
			},
		});
		const say = () => {
			out.textContent = `${input.value} ${p.unit}`;
		};
		const reset = () => {
			input.value = p.value;
			say();
		};
		say();
		const element = h(
			"tr",
			{},
			h("th", { scope: "row" }, name),
			h("td", {}, input),
			h("td", {}, out),
			h("td", { className: "soft" }, p.from.replace(/^seed\b/, "report")),
		);
		return { element, reset };
	}

	get clock() {
		return Number(this.changed.get("clock") ?? this.known.clock.value);
	}
	// What the query of a request has of them.
	machine(more) {
		const p = [...this.changed].map(([k, v]) => `${k}:${v}`).join(",");
		return p ? { ...more, p } : more;
	}
	program(more) {
		return this.machine({
			...more,
			procs: this.procs.value,
			layers: this.layers.value,
			sum: this.sum.value,
			compiler: this.compiler.value,
		});
	}
}

// A routine of the network, or of the library, as scheduled, and its microcode.
class Routines {
	constructor(library, parameters) {
		this.library = library;
		this.parameters = parameters;
		this.pick = h("select", { "aria-label": "routine", onchange: () => this.load() });
		this.summary = h("span", { className: "small soft" });
		this.listing = h("pre", { className: "listing", "aria-label": "microcode", tabIndex: 0 });
		this.schedule = new Schedule((cycle) => this.showLines(cycle));
		this.lines = [];
		this.element = card(
			"Schedule",
			h("div", { className: "bar" }, h("label", {}, "routine ", this.pick), this.schedule.tools(), this.summary),
			this.schedule.box,
			h(
				"p",
				{ className: "small soft" },
				"Drag to move; click, then turn the wheel to zoom. ",
				"Red: what an operation waits for; green: who uses its result.",
			),
			this.listing,
		);
	}

	// Those of the network, by number, and the library's, by name.
	set(list) {
		const kept = this.pick.value;
		const title = (r) =>
			`${r.routine} ${r.name}: ${num(r.cycles)} cycles, called ${r.calls === 1 ? "once" : `${num(r.calls)} times`}`;
		this.pick.replaceChildren(
			h(
				"optgroup",
				{ label: `of ${this.parameters.layers.value}` },
				list.map((r) => h("option", { value: `#${r.routine}` }, title(r))),
			),
			h(
				"optgroup",
				{ label: "library" },
				this.library.map((r) => h("option", { value: r.name }, `${r.name}: ${r.about}`)),
			),
		);
		const usable = kept && (!kept.startsWith("#") || Number(kept.slice(1)) < list.length);
		const forward = Math.max(
			0,
			list.findIndex((r) => r.name === "forward"),
		);
		this.pick.value = usable ? kept : `#${forward}`;
	}

	async load() {
		const name = this.pick.value;
		try {
			const query = name.startsWith("#")
				? this.parameters.program({ do: "program", routine: name.slice(1) })
				: this.parameters.machine({ do: "microcode", routine: name });
			const answer = await getJson("/api/gf11", query);
			if (name !== this.pick.value) return; // another by now
			const data = parse(answer.microcode);
			const busy = data.units.map((u) => `${u.name} ${((100 * u.ops.length) / data.cycles).toFixed(1)} %`);
			this.schedule.set(data);
			this.summary.textContent =
				`${num(data.ops.length)} operations in ${num(data.cycles)} cycles; ` +
				`cycles in which a unit issues: ${busy.join(", ")}`;
			this.lines = data.lines;
			this.showLines(0);
		} catch (e) {
			note(e.message);
		}
	}

	showLines(cycle) {
		let lo = 0,
			hi = this.lines.length;
		while (lo < hi) {
			const m = (lo + hi) >> 1;
			if (this.lines[m][0] < cycle) lo = m + 1;
			else hi = m;
		}
		const from = Math.max(0, Math.min(lo - 10, this.lines.length - LINES));
		this.listing.replaceChildren(
			...this.lines
				.slice(from, from + LINES)
				.map(([c, text]) => h("div", { className: c === cycle ? "marked" : "" }, text)),
		);
	}
}

export async function open() {
	const { parameters: known } = await getJson("/api/gf11", { do: "machine" });
	const { routines: library } = await getJson("/api/gf11", { do: "microcode" });
	const parameters = new Parameters(known, () => refresh()),
		epoch = new Epoch(),
		routines = new Routines(library, parameters),
		crossbars = new Switch(),
		faults = new Faults(),
		figure = new Figure(() => refresh()),
		table = new Table1();
	const element = h(
		"div",
		{},
		h("div", { className: "grid2" }, parameters.element, epoch.element),
		epoch.timeElement,
		routines.element,
		h("div", { className: "grid2" }, crossbars.element, faults.element),
		h("div", { className: "grid2" }, figure.element, table.element),
	);

	// What is asked when a parameter has moved, what counts most first, and what it is shown in.
	const ask = (query) => getJson("/api/gf11", query);
	const steps = [
		[epoch.element, async () => epoch.set((await ask(parameters.program({ do: "sweep" }))).rows[0], parameters.clock)],
		[
			routines.element,
			async () => {
				routines.set((await ask(parameters.program({ do: "program" }))).routines);
				await routines.load();
			},
		],
		[
			epoch.timeElement,
			async () => epoch.setTimeline((await ask(parameters.program({ do: "program", timeline: 1 }))).timeline),
		],
		[
			figure.element,
			async () => {
				const n = figure.number;
				figure.set(await getText("/api/gf11", parameters.machine({ do: "figures", n })), n);
			},
		],
		[
			table.element,
			async () => {
				const changed = new Map(parameters.changed);
				table.set((await ask(parameters.machine({ do: "table1" }))).rows, changed);
			},
		],
	];
	let busy = false,
		moved = false;
	async function refresh() {
		parameters.reset.disabled = parameters.changed.size === 0;
		for (const [shown] of steps) shown.classList.add("busy");
		moved = true;
		if (busy) return;
		busy = true;
		while (moved) {
			moved = false;
			for (const [shown, step] of steps) {
				await step().catch((e) => note(e.message));
				if (moved) break; // begin again
				shown.classList.remove("busy");
			}
		}
		busy = false;
	}

	crossbars.load();
	refresh();
	const draw = () => {
		for (const part of [epoch, routines.schedule, crossbars, figure, faults]) part.draw();
	};
	return { element, restyle: draw, show: draw, hide: () => crossbars.play(false) };
}
