// SPDX-License-Identifier: MIT
// Runs: learning curves over each other, options beside each other.
import { h, num, share, colour, post, note, later, swatch } from "./dom.js";
import { Chart } from "./plot.js";

// Charts: which columns they show; the second of a pair is the same on test data.
const known = [
	{ title: "Error", keys: ["error", "test_error"] },
	{ title: "Accuracy", keys: ["right", "test_right"], percent: true },
	{ title: "Within the threshold", keys: ["within", "test_within"], percent: true },
	{ title: "Gradient norm", keys: ["gradient_norm"] },
	{ title: "Weight norm", keys: ["weight_norm"] },
	{ title: "Weight change per update", keys: ["step_norm"] },
	{ title: "Learning rate", keys: ["rate"] },
	{ title: "Speed (MCPS)", keys: ["mcps"] },
	{ title: "Simulated speed (MCPS)", keys: ["simulated_mcps"] },
];
const axes = ["epoch", "updates", "seconds", "simulated_seconds"];

export async function open(app) {
	const hidden = new Set();
	const charts = known.map((k) => ({ ...k, chart: new Chart({ title: k.title, percent: k.percent }) }));
	const list = h("ul", { className: "runs" }),
		grid = h("div", { className: "charts" }),
		table = h("div", { className: "scroll" });
	const onlyDifferent = h("input", { type: "checkbox", onchange: () => options() });
	const axis = h(
		"select",
		{ "aria-label": "horizontal axis", onchange: () => draw() },
		axes.map((k) => h("option", { value: k }, k.replace("_", " "))),
	);
	const logX = h("input", { type: "checkbox", onchange: () => draw() }),
		logY = h("input", { type: "checkbox", onchange: () => draw() });
	const smoothing = h("input", {
		type: "range",
		min: 0,
		max: 0.99,
		step: 0.01,
		value: 0,
		"aria-label": "smoothing",
		oninput: () => draw(),
	});
	const smoothText = h("output", { className: "mono" }, "0");
	const more = h("p", { className: "small soft" }, "There are more runs; name folders to see others.");
	const empty = h(
		"div",
		{ className: "card empty" },
		h("h1", {}, "No run yet"),
		h("p", {}, "Train one with a folder, and name the folder:"),
		h(
			"p",
			{},
			h("code", {}, "microprop train example:letters --run runs/1"),
			h("br"),
			h("code", {}, "microprop view runs"),
		),
	);
	const optionsCard = h(
		"section",
		{ className: "card", "aria-label": "Options" },
		h(
			"div",
			{ className: "head" },
			h("h2", {}, "Options"),
			h("label", { className: "small" }, onlyDifferent, " only differences"),
		),
		table,
	);
	const body = h(
		"div",
		{ className: "split" },
		h("section", { className: "card", "aria-label": "Runs" }, h("h1", {}, "Runs"), list, more),
		h(
			"div",
			{},
			h(
				"div",
				{ className: "bar" },
				h("label", {}, "by ", axis),
				h("label", {}, logX, "log x"),
				h("label", {}, logY, "log y"),
				h("label", {}, "smoothing ", smoothing, smoothText),
				h("span", { className: "soft small" }, "drag to zoom, double-click for all"),
			),
			grid,
			optionsCard,
		),
	);
	const element = h("div", {}, empty, body);

	const last = (r, key) => r.columns[key]?.at(-1);
	const runColour = (r) => colour(r.index);
	const limit = (r) => r.args?.options?.epochs;

	async function act(r, action) {
		try {
			await post("/api/control", { run: r.index, action });
		} catch (e) {
			note(e.message);
		}
	}

	function item(r) {
		const epoch = last(r, "epoch"),
			most = limit(r);
		const text =
			epoch === undefined
				? "no epoch yet"
				: `epoch ${num(epoch)}${most ? " of " + num(most) : ""}, ` +
					`error ${num(last(r, "error"))}, right ${share(last(r, "right"))}` +
					(Number.isFinite(last(r, "test_right")) ? `, test ${share(last(r, "test_right"))}` : "");
		const buttons = app.about.control
			? [
					r.live && h("button", { type: "button", onclick: () => act(r, "stop") }, "Stop and save"),
					r.live &&
						app.about.trains &&
						r.args?.arguments?.some((w) => w === "--run" || w.startsWith("--run=")) &&
						h("button", { type: "button", onclick: () => act(r, "save") }, "Save"),
					!r.live &&
						r.curve &&
						r.model &&
						!app.about.trains &&
						h("button", { type: "button", onclick: () => act(r, "resume") }, "Resume"),
				]
			: [];
		return h(
			"li",
			{ "data-run": r.index },
			h(
				"label",
				{},
				h("input", {
					type: "checkbox",
					checked: !hidden.has(r.name),
					onchange: (e) => {
						if (e.target.checked) hidden.delete(r.name);
						else hidden.add(r.name);
						draw();
						options();
					},
				}),
				h("span", { title: r.path }, swatch(runColour(r)), r.name),
				h(
					"span",
					{ className: r.live ? "badge live push" : "badge push" },
					r.live ? "training" : r.curve ? "ended" : "model",
				),
			),
			r.curve && h("div", { className: "small soft" }, text),
			h("div", { className: "bar" }, buttons),
		);
	}

	function series(r, key, k) {
		const x = r.columns[axis.value],
			y = r.columns[key];
		if (!x || !y || !y.some(Number.isFinite)) return null;
		const there = y.every(Number.isFinite) ? null : y.map((v, i) => i).filter((i) => Number.isFinite(y[i]));
		return {
			name: r.name + (k ? " (test)" : ""),
			colour: runColour(r),
			dash: k ? [6, 4] : undefined,
			x: there ? there.map((i) => x[i]) : x,
			y: there ? there.map((i) => y[i]) : y,
		};
	}

	function draw() {
		smoothText.textContent = smoothing.value;
		const runs = app.runs.filter((r) => r.curve && !hidden.has(r.name));
		for (const entry of charts) {
			const c = entry.chart;
			Object.assign(c, {
				xTitle: axis.value.replace("_", " "),
				logX: logX.checked,
				logY: logY.checked,
				smoothing: Number(smoothing.value),
			});
			if (c.axis !== axis.value) {
				c.axis = axis.value;
				c.zoom = null;
			}
			c.series = entry.keys.flatMap((key, k) => runs.map((r) => series(r, key, k))).filter(Boolean);
			const there = c.series.length > 0 || entry.title === "Error";
			if (there !== c.element.isConnected) {
				const shown = charts
					.filter((o) => (o === entry ? there : o.chart.element.parentElement === grid))
					.map((o) => o.chart.element);
				grid.replaceChildren(...shown);
			}
			c.draw();
		}
	}

	function options() {
		const runs = app.runs.filter((r) => r.args && !hidden.has(r.name));
		optionsCard.hidden = runs.length === 0;
		const text = (v) =>
			v === undefined || v === null ? "–" : typeof v === "object" ? JSON.stringify(v) : String(v);
		const rows = new Map();
		for (const r of runs) {
			const { options: o, arguments: words, ...rest } = r.args;
			for (const [key, value] of Object.entries({ ...rest, ...o })) {
				if (!rows.has(key)) rows.set(key, new Map());
				rows.get(key).set(r, text(value));
			}
		}
		const body = [...rows].map(([key, values]) => {
			const cells = runs.map((r) => values.get(r) ?? "–");
			const differs = cells.some((c) => c !== cells[0]);
			if (onlyDifferent.checked && !differs) return null;
			return h(
				"tr",
				{ className: differs ? "differs" : "" },
				h("th", { scope: "row" }, key),
				cells.map((c) => h("td", {}, c)),
			);
		});
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
						h("th", {}, "option"),
						runs.map((r) => h("th", { scope: "col", title: r.path }, r.name)),
					),
				),
				h("tbody", {}, body.filter(Boolean)),
			),
		);
	}

	let counted = 0;
	function all() {
		if (app.runs.length > 1 && counted < 2) onlyDifferent.checked = true;
		counted = app.runs.length;
		more.hidden = !app.full;
		empty.hidden = app.runs.length > 0;
		body.hidden = app.runs.length === 0;
		list.replaceChildren(...app.runs.map(item));
		draw();
		options();
	}
	const lines = later(() => {
		for (const r of app.runs) list.querySelector(`[data-run="${r.index}"]`)?.replaceWith(item(r));
		draw();
	});
	app.listen((kind) => {
		if (kind === "runs") all();
		else if (kind === "line") lines();
	});
	all();
	return { element, restyle: all, show: draw };
}
