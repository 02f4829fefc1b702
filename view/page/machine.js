// SPDX-License-Identifier: MIT
// The machine of 1989: parameters, an epoch, schedules, the switch, Table 1 and figures, faults.
import { h, num, getJson, getText, note, colour } from "./dom.js";
import { Chart } from "./plot.js";
import { Grid } from "./grid.js";
import { parse, Schedule } from "./schedule.js";
import { Crossbars } from "./switch.js";

const routines = [
	"forward",
	"backward",
	"backward-input",
	"sigmoid-table",
	"sigmoid-powers",
	"reciprocal",
	"polynomial",
	"dot",
	"matrix-vector",
	"vector-add",
	"vector-sum",
	"look-up",
	"scatter",
	"block-move",
	"exchange",
	"forward-uncached",
	"backward-uncached",
	"forward-first",
	"backward-first",
];
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
const parts = [
	["forward", "forward"],
	["backward", "backward"],
	["units", "unit functions"],
	["memory", "fetch from DRAM"],
	["update", "sum and update"],
	["host", "host calls"],
];
const figureTitles = {
	8: "Figure 8: speed, ring sum",
	9: "Figure 9: epoch time, ring sum",
	10: "Figure 10: speed, tree sum",
	11: "Figure 11: epoch time, tree sum",
};

export async function open() {
	const { parameters } = await getJson("/api/gf11", { do: "machine" });
	const changed = new Map();
	const card = (title, ...rest) =>
		h("section", { className: "card", "aria-label": title }, h("h2", {}, title), ...rest);
	const choice = (label, values, value, fn) =>
		h(
			"select",
			{ "aria-label": label, onchange: fn },
			values.map((v) => h("option", { value: v, selected: v === value }, v)),
		);

	const layers = h("input", {
		value: "203-60-26",
		size: 12,
		"aria-label": "layers of the network",
		pattern: "[0-9]+(-[0-9]+)+",
		onchange: () => refresh(),
	});
	const procs = h("input", {
		type: "range",
		min: 1,
		max: 566,
		value: 512,
		"aria-label": "processors",
		oninput: () => {
			procsText.textContent = procs.value;
		},
		onchange: () => refresh(),
	});
	const procsText = h("output", { className: "mono" }, "512");
	const sum = choice("summation", ["tree", "ring", "halving", "pipelined"], "tree", () => refresh());
	const compiler = choice("compiler", ["1989", "best"], "1989", () => refresh());
	const reset = h(
		"button",
		{
			type: "button",
			disabled: true,
			onclick: () => {
				changed.clear();
				for (const s of Object.values(controls)) s.reset();
				refresh();
			},
		},
		"As in 1989",
	);
	const controls = {};
	const sliderRows = Object.entries(sliders).map(([name, [lo, hi]]) => {
		const p = parameters[name],
			out = h("output", { className: "mono" });
		const input = h("input", {
			type: "range",
			min: lo,
			max: hi,
			value: p.value,
			"aria-label": name,
			oninput: () => say(),
			onchange: () => {
				if (Number(input.value) === p.value) changed.delete(name);
				else changed.set(name, input.value);
				refresh();
			},
		});
		const say = () => {
			out.textContent = `${input.value} ${p.unit}`;
		};
		controls[name] = {
			reset: () => {
				input.value = p.value;
				say();
			},
		};
		say();
		return h(
			"tr",
			{},
			h("th", { scope: "row" }, name),
			h("td", {}, input),
			h("td", {}, out),
			h("td", { className: "soft" }, p.from),
		);
	});
	const bar = h("div", { role: "img" }),
		legend = h("div"),
		speed = h("div", { className: "figures" });
	bar.style.cssText = "display:flex;height:42px;border-radius:8px;overflow:hidden;margin-bottom:.6rem";

	const figurePick = choice("figure", Object.keys(figureTitles), "10", () => refresh());
	const figure = new Chart({ title: "Speed and time by processors", xTitle: "processors", legend: true });
	const table = h("div", { className: "scroll" }),
		tableNote = h("p", { className: "small soft" });

	const routinePick = h("select", { "aria-label": "routine", onchange: () => loadSchedule() });
	const routineText = h("span", { className: "small soft" }),
		listing = h("pre", { "aria-label": "microcode", tabIndex: 0 });
	listing.style.cssText =
		"height:24.5rem;overflow:auto;border:1px solid var(--line);border-radius:.4rem;padding:.3rem";
	const schedule = new Schedule((cycle) => showLines(cycle));
	const tool = (text, label, fn) =>
		h("button", { type: "button", "aria-label": label, title: label, onclick: fn }, text);

	const kind = choice("permutation", ["ring", "tree", "halving", "random"], "tree", () => {
		step.value = 0;
		loadSwitch();
	});
	const step = h("input", {
		type: "range",
		min: 0,
		max: 9,
		value: 0,
		"aria-label": "step",
		oninput: () => loadSwitch(),
	});
	const stepText = h("p", { className: "small soft" }),
		crossbars = new Crossbars();
	let playing = 0;
	const play = h("button", { type: "button", "aria-pressed": "false", onclick: () => setPlay(!playing) }, "Play");

	const faults = new Set(["stuck:77:sram:1200:3", "link:input:3:5"]);
	const faultKind = choice("kind of fault", ["dead", "stuck", "alu", "port"], "dead");
	const faultText = h("input", { placeholder: "link:input:3:5", size: 22, "aria-label": "a fault to put in" });
	const chips = h("div", { className: "bar" }),
		found = h("div");
	const processors = new Grid({
		label: "processors",
		least: 10,
		most: 15,
		ground: "--grid",
		tip: (r, c) => processorTip(24 * r + c),
		onpick: (r, c) => toggleProcessor(24 * r + c),
	});
	const stageGrid = new Grid({
		label: "crossbars of the switch",
		least: 10,
		most: 15,
		ground: "--grid",
		tip: (r, c) => `${["input", "middle", "output"][r]} crossbar ${c}: click to break it`,
		onpick: (r, c) => toggle(`crossbar:${["input", "middle", "output"][r]}:${c}`),
	});
	const diagnoseButton = h("button", { type: "button", className: "main", onclick: () => diagnose() }, "Diagnose");
	let report = null;

	const element = h(
		"div",
		{},
		h(
			"div",
			{ className: "grid2" },
			h(
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
					h("label", {}, "network ", layers),
					h("label", {}, "sum ", sum),
					h("label", {}, "compiler ", compiler),
				),
				h("div", { className: "bar" }, h("label", {}, "processors ", procs, procsText), reset),
				h("div", { className: "scroll" }, h("table", {}, h("tbody", {}, sliderRows))),
			),
			card("An epoch", speed, h("p"), bar, legend),
		),
		h("p"),
		card(
			"Schedule",
			h(
				"div",
				{ className: "bar" },
				h("label", {}, "routine ", routinePick),
				tool("+", "zoom in", () => schedule.zoom(1.6)),
				tool("−", "zoom out", () => schedule.zoom(1 / 1.6)),
				tool("all", "show all cycles", () => schedule.all()),
				routineText,
			),
			schedule.box,
			h(
				"p",
				{ className: "small soft" },
				"Drag to move; click, then turn the wheel to zoom. ",
				"Red: what an operation waits for; green: who uses its result.",
			),
			listing,
		),
		h(
			"div",
			{ className: "grid2" },
			card(
				"The switch",
				h(
					"div",
					{ className: "bar" },
					h("label", {}, "routes of ", kind),
					h("label", {}, "step ", step),
					play,
				),
				stepText,
				crossbars.box,
			),
			card(
				"Faults",
				h(
					"p",
					{ className: "small soft" },
					"Put faults in by a click; the diagnosis that runs before training finds them ",
					"and trains around them.",
				),
				h("div", { className: "bar" }, h("label", {}, "a click on a processor makes it ", faultKind)),
				processors.element,
				h("h3", {}, "Crossbars: input, middle and output stage"),
				stageGrid.element,
				h("p"),
				h(
					"form",
					{
						className: "bar",
						onsubmit: (e) => {
							e.preventDefault();
							const t = faultText.value.trim();
							if (t) toggle(t);
							faultText.value = "";
						},
					},
					faultText,
					h("button", {}, "Add"),
					diagnoseButton,
				),
				chips,
				found,
			),
		),
		h("p"),
		h(
			"div",
			{ className: "grid2" },
			h("div", {}, h("div", { className: "bar" }, h("label", {}, "figure ", figurePick)), figure.element),
			card("Table 1: MCPS of NETtalk", tableNote, table),
		),
	);

	const query = (more) => ({
		...more,
		...(changed.size ? { p: [...changed].map(([k, v]) => `${k}:${v}`).join(",") } : {}),
	});
	const ask = (more) => getJson("/api/gf11", query(more));

	// ---- the epoch ----
	function showEpoch(row) {
		const clock = Number(changed.get("clock") ?? parameters.clock.value),
			ms = (c) => c * clock * 1e-6;
		bar.replaceChildren(
			...parts.map(([key, name], i) => {
				const d = h("div", { title: `${name}: ${num(row[key])} cycles` });
				d.style.cssText = `width:${(100 * row[key]) / row.cycles}%;background:${colour(i)}`;
				return d;
			}),
		);
		bar.setAttribute(
			"aria-label",
			parts.map(([key, name]) => `${name} ${((100 * row[key]) / row.cycles).toFixed(1)} %`).join(", "),
		);
		legend.replaceChildren(
			h(
				"table",
				{},
				h(
					"tbody",
					{},
					parts.map(([key, name], i) => {
						const s = h("span", { className: "swatch" });
						s.style.background = `var(--c${i})`;
						return h(
							"tr",
							{},
							h("th", { scope: "row" }, s, name),
							h("td", { className: "n" }, num(row[key])),
							h("td", {}, "cycles"),
							h("td", { className: "n" }, `${num(ms(row[key]), 3)} ms`),
							h("td", { className: "n" }, `${((100 * row[key]) / row.cycles).toFixed(1)} %`),
						);
					}),
				),
			),
		);
		speed.replaceChildren(
			h("div", {}, h("b", { id: "mcps" }, num(row.mcps)), h("span", {}, "million connections per second")),
			h("div", {}, h("b", { id: "epoch-cycles" }, num(row.cycles)), h("span", {}, "cycles")),
			h("div", {}, h("b", {}, `${num(ms(row.cycles), 4)} ms`), h("span", {}, "per epoch of 12,022 cases")),
		);
	}

	function showTable(rows) {
		tableNote.textContent = changed.size
			? `With ${[...changed].map(([k, v]) => `${k} ${v}`).join(", ")}, instead of the machine of the report.`
			: "The report's figures beside ours.";
		table.replaceChildren(
			h(
				"table",
				{},
				h(
					"thead",
					{},
					h(
						"tr",
						{},
						["processors", "sum", "report", "simulated", "difference", "model", "limit"].map((t, i) =>
							h("th", { className: i === 1 ? "" : "n", scope: "col" }, t),
						),
					),
				),
				h(
					"tbody",
					{},
					rows.map((r) =>
						h(
							"tr",
							{},
							h("td", { className: "n" }, String(r.procs)),
							h("td", {}, r.sum),
							h("td", { className: "n" }, num(r.paper)),
							h("td", { className: "n" }, h("b", {}, num(r.sim1989))),
							h(
								"td",
								{ className: "n" },
								r.paper === null ? "–" : `${r.error_pct > 0 ? "+" : ""}${num(r.error_pct, 2)} %`,
							),
							h("td", { className: "n" }, num(r.model)),
							h("td", { className: "n" }, num(r.limit)),
						),
					),
				),
			),
		);
	}

	function showFigure(text, n) {
		const [head, ...rows] = text
			.trim()
			.split("\n")
			.map((l) => l.split(","));
		const wanted =
			n === "8" || n === "10"
				? { model_mcps: "model", measured_1989_mcps: "measured 1989", simulated_mcps: "simulated" }
				: {
						model_total_ms: "model, total",
						model_computation_ms: "model, computation",
						model_communication_ms: "model, communication",
						measured_1989_total_ms: "measured 1989",
						simulated_total_ms: "simulated",
					};
		figure.series = Object.entries(wanted).map(([key, name], i) => {
			const k = head.indexOf(key),
				own = rows.filter((r) => r[k] !== "" && r[k] !== undefined);
			return {
				name,
				colour: colour(i),
				points: !key.startsWith("model"),
				dash: /computation|communication/.test(key) ? [5, 4] : undefined,
				x: own.map((r) => Number(r[0])),
				y: own.map((r) => Number(r[k])),
			};
		});
		figure.logX = figure.logY = n === "9" || n === "11";
		figure.title = figureTitles[n];
		figure.element.querySelector("h2").textContent = figureTitles[n];
		figure.draw();
	}

	// One round of questions at a time; parameters that moved meanwhile start another.
	let busy = false,
		again = false,
		routineCount = 0;
	async function refresh() {
		reset.disabled = changed.size === 0;
		if (busy) {
			again = true;
			return;
		}
		busy = true;
		element.classList.add("busy");
		try {
			do {
				again = false;
				const common = { layers: layers.value, sum: sum.value, compiler: compiler.value };
				showEpoch((await ask({ do: "sweep", procs: procs.value, ...common })).rows[0]);
				if (again) continue;
				showRoutines((await ask({ do: "program", procs: procs.value, ...common })).routines);
				await loadSchedule();
				element.classList.remove("busy");
				if (again) continue;
				showFigure(
					await getText("/api/gf11", query({ do: "figures", n: figurePick.value })),
					figurePick.value,
				);
				if (again) continue;
				showTable((await ask({ do: "table1" })).rows);
			} while (again);
		} catch (e) {
			note(e.message);
		}
		busy = false;
		element.classList.remove("busy");
		if (again) refresh();
	}

	// ---- schedule ----
	function showRoutines(list) {
		const kept = routinePick.value;
		routinePick.replaceChildren(
			h(
				"optgroup",
				{ label: `of ${layers.value}` },
				list.map((r) =>
					h(
						"option",
						{ value: `#${r.routine}` },
						`${r.routine} ${r.name}: ${num(r.cycles)} cycles, called ${num(r.calls)} times`,
					),
				),
			),
			h(
				"optgroup",
				{ label: "library" },
				routines.map((r) => h("option", { value: r }, r)),
			),
		);
		routineCount = list.length;
		const usable = kept && (!kept.startsWith("#") || Number(kept.slice(1)) < routineCount);
		routinePick.value = usable
			? kept
			: `#${Math.max(
					0,
					list.findIndex((r) => r.name === "forward"),
				)}`;
	}

	async function loadSchedule() {
		const name = routinePick.value;
		try {
			const answer = name.startsWith("#")
				? await ask({
						do: "program",
						procs: procs.value,
						layers: layers.value,
						sum: sum.value,
						compiler: compiler.value,
						routine: name.slice(1),
					})
				: await ask({ do: "microcode", routine: name });
			const data = parse(answer.microcode);
			schedule.set(data);
			const busyOf = (u) => `${u.name} ${((100 * u.ops.length) / data.cycles).toFixed(1)} %`;
			const issuing = data.units.map(busyOf).join(", ");
			routineText.textContent = 
				`${num(data.ops.length)} operations in ${num(data.cycles)} cycles; issuing: ${issuing}`;
			listing.replaceChildren();
			lines = data.lines;
			showLines(0);
		} catch (e) {
			note(e.message);
		}
	}

	let lines = [];
	function showLines(cycle) {
		let lo = 0,
			hi = lines.length;
		while (lo < hi) {
			const m = (lo + hi) >> 1;
			if (lines[m][0] < cycle) lo = m + 1;
			else hi = m;
		}
		const from = Math.max(0, Math.min(lo - 10, lines.length - 24));
		listing.replaceChildren(
			...lines.slice(from, from + 24).map(([c, text]) => {
				const row = h("div", {}, text);
				if (c === cycle) row.style.background = "var(--mark)";
				return row;
			}),
		);
	}

	// ---- switch ----
	async function loadSwitch() {
		const k = Number(step.value),
			most = { ring: 0, tree: 9, halving: 8, random: 9 }[kind.value];
		step.max = most;
		step.disabled = most === 0;
		play.disabled = most === 0;
		const says = {
			ring: "Every processor sends to the next one, in every step; after 565 steps each has the sum of all.",
			tree: `Step ${k}: processor i sends to i + ${2 ** k}; after ten steps each has the sum of all.`,
			halving: `Step ${k}: partners at distance ${256 >> k} exchange halves of their sums; 512 processors.`,
			random: `Random permutation ${k}: every port sends, and the router finds a way for each.`,
		};
		try {
			const answer = await getJson("/api/gf11", { do: "switch", kind: kind.value, step: k });
			const verified = answer.verified ? ", verified by tokens" : "";
			const set = `${num(answer.routes)} routes, set in ${num(answer.microseconds, 3)} microseconds${verified}.`;
			stepText.textContent = `${says[kind.value]} ${set}`;
			crossbars.set(answer);
		} catch (e) {
			note(e.message);
		}
	}
	function setPlay(on) {
		clearInterval(playing);
		playing = on
			? setInterval(() => {
					step.value = (Number(step.value) + 1) % (Number(step.max) + 1);
					loadSwitch();
				}, 900)
			: 0;
		play.setAttribute("aria-pressed", String(on));
	}

	// ---- faults ----
	const processorFault = (i) => [...faults].find((f) => new RegExp(`^(dead|alu|port|stuck):${i}(:|$)`).test(f));
	function processorTip(i) {
		const f = processorFault(i),
			refused = report?.refused.includes(i);
		if (i >= 566) return `port ${i}: of the disks`;
		return `processor ${i}${f ? `: ${f}` : ""}${refused ? ", refused by the diagnosis" : ""}`;
	}
	function toggleProcessor(i) {
		if (i >= 566) return;
		const f = processorFault(i);
		toggle(
			f ??
				{ dead: `dead:${i}`, stuck: `stuck:${i}:sram:1200:3`, alu: `alu:${i}:0.01`, port: `port:${i}` }[
					faultKind.value
				],
		);
	}
	function toggle(f) {
		if (faults.has(f)) faults.delete(f);
		else if (faults.size < 16) faults.add(f);
		else note("16 faults at most");
		report = null;
		found.replaceChildren();
		drawFaults();
	}
	function drawFaults() {
		const outcome = (f) => {
			const r = report?.faults.find((o) => o.fault === f || o.fault.startsWith(f));
			return r ? (r.found ? 1 : -1) : 0.45;
		};
		processors.set(
			24,
			24,
			Array.from({ length: 576 }, (_, i) =>
				i >= 566
					? NaN
					: processorFault(i)
						? outcome(processorFault(i))
						: report?.refused.includes(i)
							? -0.5
							: 0,
			),
			1,
		);
		stageGrid.set(
			3,
			24,
			["input", "middle", "output"].flatMap((s) =>
				Array.from({ length: 24 }, (_, i) =>
					faults.has(`crossbar:${s}:${i}`) ? outcome(`crossbar:${s}:${i}`) : 0,
				),
			),
			1,
		);
		chips.replaceChildren(
			...[...faults].map((f) =>
				h(
					"button",
					{ type: "button", title: "take it out", "aria-label": `take out ${f}`, onclick: () => toggle(f) },
					`${f} ×`,
				),
			),
		);
		diagnoseButton.disabled = faults.size === 0;
	}
	async function diagnose() {
		diagnoseButton.disabled = true;
		found.replaceChildren(h("p", {}, "Testing memories, switch and processors…"));
		try {
			report = await getJson("/api/gf11", { do: "diagnose", faults: [...faults].join(",") });
			found.replaceChildren(
				h(
					"p",
					{},
					h("b", {}, `${report.detected} of ${report.injected} found`),
					`, ${report.missed} missed, ${report.false_alarms} false alarms; `,
					`${report.approved} processors approved.`,
				),
				h(
					"table",
					{},
					h(
						"tbody",
						{},
						report.faults.map((f) =>
							h(
								"tr",
								{},
								h("td", {}, f.found ? "✓" : f.changes ? "✗" : "–"),
								h("td", { className: "mono" }, f.fault),
								h("td", {}, f.found ? "found" : f.changes ? "missed" : "changes no result"),
							),
						),
					),
				),
			);
		} catch (e) {
			found.replaceChildren(h("p", {}, e.message));
		}
		drawFaults();
	}

	drawFaults();
	loadSwitch();
	refresh();
	const redraw = () => {
		schedule.draw();
		crossbars.draw();
		figure.draw();
		processors.draw();
		stageGrid.draw();
	};
	return { element, restyle: redraw, show: redraw, hide: () => setPlay(false) };
}
