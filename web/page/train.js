// SPDX-License-Identifier: MIT
// Train a network in the page: an example or a topology of one's own, its learning curve, its fingerprint.
import { h, num, share, colour, note, save } from "./dom.js";
import { Chart } from "./plot.js";
import { begin, stop, busy, runFiles } from "./serverless.js";

const words = (text) => text.match(/\S+/g) ?? [];

export async function open(app) {
	const examples = await (await fetch("examples/list.json")).json();
	const pick = h(
		"select",
		{ "aria-label": "example", onchange: () => load() },
		examples.map((name) => h("option", {}, name)),
	);
	const text = h("textarea", {
		className: "mono topology",
		rows: 16,
		spellcheck: false,
		"aria-label": "topology",
	});
	const data = h("input", { type: "file", multiple: true, "aria-label": "data files" });
	const target = h(
		"select",
		{ "aria-label": "target", onchange: () => line() },
		[
			["cpu", "cpu"],
			["ref", "ref (double precision)"],
			["gf11", "gf11 (simulated)"],
		].map(([v, t]) => h("option", { value: v }, t)),
	);
	const epochs = h("input", {
		type: "number",
		min: 1,
		placeholder: "as given",
		"aria-label": "epochs",
		oninput: () => line(),
	});
	const seed = h("input", {
		type: "number",
		min: 0,
		placeholder: "1",
		"aria-label": "seed",
		oninput: () => line(),
	});
	const more = h("input", {
		type: "text",
		placeholder: "--rate 0.1 --batch 32",
		"aria-label": "more options",
		oninput: () => line(),
	});
	const start = h(
		"button",
		{ type: "button", className: "main", id: "train-start", onclick: () => go() },
		"Train",
	);
	const halt = h(
		"button",
		{
			type: "button",
			id: "train-stop",
			disabled: true,
			onclick: () => {
				halt.disabled = true;
				stop();
			},
		},
		"Stop",
	);
	const keep = h("button", { type: "button", disabled: true, onclick: () => download() }, "Save weights");
	const shown = h("code", { className: "command", id: "train-command" });
	const figures = h("div", { className: "figures", "aria-live": "polite" });
	const messages = h("pre", { className: "messages", role: "status", hidden: true });
	const error = new Chart({ title: "Error" }),
		right = new Chart({ title: "Accuracy", percent: true });
	let name = null,
		columns = {};

	const file = () => `${pick.value}.topo`;
	const options = () => [
		...(target.value === "cpu" ? [] : ["--target", target.value]),
		...(epochs.value ? ["--epochs", epochs.value] : []),
		...(seed.value ? ["--seed", seed.value] : []),
		...words(more.value),
	];
	const line = () => {
		shown.textContent = ["microprop train", file(), ...options()].join(" ");
	};

	async function load() {
		text.value = await (await fetch(`examples/${pick.value}.topo`)).text();
		line();
	}

	function figure(label, value, id) {
		return h("div", {}, h("b", { id }, value), h("span", {}, label));
	}

	function show(r, live) {
		figures.replaceChildren(
			figure("epochs", num(r.epochs ?? r.epoch), "train-epochs"),
			figure("error", num(r.error)),
			figure("right", share(r.right)),
			figure("seconds", num(r.seconds, 3)),
			figure("million connections/s", num(r.mcps, 3)),
			(r.simulated_mcps !== undefined &&
				figure("simulated million connections/s", num(r.simulated_mcps, 3))) ||
				"",
			figure(live ? "training" : "stopped by", live ? "…" : (r.stopped_by ?? "–")),
			figure("fingerprint of the weights", r.fingerprint ?? "–", "train-fingerprint"),
		);
	}

	function draw() {
		const series = (key, title, k) =>
			columns[key] && {
				name: title,
				colour: colour(k),
				dash: k ? [6, 4] : undefined,
				x: columns.epoch,
				y: columns[key],
			};
		error.series = [series("error", "training", 0), series("test_error", "test", 1)].filter(Boolean);
		right.series = [series("right", "training", 0), series("test_right", "test", 1)].filter(Boolean);
		error.draw();
		right.draw();
	}

	function news(n) {
		if (n.line) {
			const r = JSON.parse(n.line);
			for (const key of ["epoch", "error", "right", "test_error", "test_right"])
				if (r[key] !== undefined) (columns[key] ??= []).push(r[key] ?? NaN);
			draw();
			show(r, true);
		}
	}

	async function go() {
		if (busy()) {
			note("another run is being trained: stop it first");
			return;
		}
		const files = { [file()]: text.value };
		for (const f of data.files) files[f.name] = new Uint8Array(await f.arrayBuffer());
		columns = {};
		draw();
		messages.hidden = true;
		start.disabled = true;
		halt.disabled = false;
		keep.disabled = true;
		delete document.body.dataset.trained;
		figures.replaceChildren(figure("training", "…"));
		try {
			const r = await begin(pick.value, ["train", file(), ...options()], files, news);
			name = r.name;
			messages.textContent = r.err;
			messages.hidden = !r.err;
			if (r.out) {
				const end = JSON.parse(r.out);
				show(r.stopped && end.stopped_by === "time" ? { ...end, stopped_by: "you" } : end, false);
				keep.disabled = false;
			} else figures.replaceChildren();
		} catch (e) {
			note(e.message);
		}
		start.disabled = false;
		halt.disabled = true;
		document.body.dataset.trained = "1";
	}

	const download = () => {
		const weights = Object.entries(runFiles(name)).find(([path]) => path.endsWith("/last.safetensors"));
		if (weights) save(`${pick.value}.safetensors`, new Blob([weights[1]]));
	};

	pick.value = examples.includes("letters") ? "letters" : examples[0];
	await load();
	const element = h(
		"div",
		{ className: "split train" },
		h(
			"section",
			{ className: "card", "aria-label": "Network" },
			h("h1", {}, "Train"),
			h(
				"p",
				{ className: "soft small" },
				"Everything is computed in this page, in a worker; nothing is sent anywhere. The bits are those of ",
				h("code", {}, "microprop"),
				" on any computer.",
			),
			h("div", { className: "bar" }, h("label", {}, "example ", pick)),
			text,
			h(
				"div",
				{ className: "bar" },
				h("label", {}, "target ", target),
				h("label", {}, "epochs ", epochs),
				h("label", {}, "seed ", seed),
			),
			h("label", { className: "wide" }, "options ", more),
			h("label", { className: "wide small" }, "data files ", data),
			h("div", { className: "bar" }, start, halt, keep),
			h("p", {}, shown),
			messages,
		),
		h(
			"div",
			{},
			h(
				"section",
				{ className: "card", "aria-label": "Result" },
				h("h2", {}, "Result"),
				figures,
				h(
					"p",
					{ className: "soft small" },
					"The same command prints the same fingerprint on your computer. The run is also under ",
					h("a", { href: "#runs" }, "Runs"),
					" and ",
					h("a", { href: "#network" }, "Network"),
					".",
				),
			),
			h("div", { className: "charts" }, error.element, right.element),
		),
	);
	const view = { element, restyle: draw, show: draw };
	void app;
	return view;
}
