// SPDX-License-Identifier: MIT
// A trained network: structure, weights, activations of a case that can be changed, receptive fields, errors.
import { h, num, share, css, getJson, getFloats, note, fit, later } from "./dom.js";
import { Grid, columnsFor } from "./grid.js";
import { levels, structureSvg } from "./structure.js";

const BINS = 60;
export async function open(app) {
	let net = null,
		links = null,
		weights = null,
		run = null,
		epoch = 0,
		block = null,
		changes = new Map(),
		caseNumber = 0,
		history = [],
		seen = "",
		answer = null;

	const pick = h("select", { "aria-label": "run", onchange: () => load(true) });
	const checkpoint = h("select", { "aria-label": "checkpoint", onchange: () => load(true) });
	const figures = h("div", { className: "figures" });
	const structure = h("div", { className: "scroll" });
	const blockPick = h("select", {
		"aria-label": "block",
		onchange: () => {
			block = blocks()[Number(blockPick.value)];
			drawWeights();
		},
	});
	const hinton = new Grid({
		label: "Hinton diagram",
		squares: true,
		most: 20,
		tip: (r, c, v) => `${block.source}[${c}] → ${block.to}[${r}]: ${num(v)}`,
	});
	const histogram = h("canvas", { className: "plain", role: "img" }),
		overTime = h("canvas", { className: "plain", role: "img" });
	const overTimeNote = h("p", { className: "small soft" });
	const fields = h("div", { className: "bar" }),
		fieldsNote = h("p", { className: "small soft" });
	const casePick = h("input", {
		type: "number",
		min: 0,
		value: 0,
		"aria-label": "case",
		onchange: () => {
			caseNumber = Number(casePick.value);
			changes.clear();
			activations();
		},
	});
	const caseName = h("b"),
		guess = h("p"),
		groupsBox = h("div");
	const inputNumber = h("input", { type: "number", min: 0, value: 0, "aria-label": "number of the input" });
	const inputValue = h("input", {
		type: "number",
		step: "any",
		value: 1,
		"aria-label": "value of the input",
		onchange: () => typed(),
	});
	const resetButton = h(
		"button",
		{
			type: "button",
			onclick: () => {
				changes.clear();
				activations();
			},
		},
		"Undo changes",
	);
	const confusion = new Grid({
		label: "confusion matrix",
		least: 5,
		most: 26,
		dim: true,
		tip: (r, c, v) =>
			`${measured.classes[r]} taken for ${measured.classes[c]}: ${num(v)}${r === c ? " (right)" : ""}`,
		onpick: (r, c) => wrongCase(r, c),
	});
	const confusionNote = h("p", { className: "small soft" }),
		worst = h("div", { className: "scroll", style: "" });
	worst.style.maxHeight = "420px";
	let measured = null;
	const card = (title, ...rest) =>
		h("section", { className: "card", "aria-label": title }, h("h2", {}, title), ...rest);
	const empty = h("div", { className: "card empty" });
	const confusionCard = card("Confusion matrix", confusionNote, confusion.element),
		worstCard = card("Worst cases", worst);
	const caseCard = card(
		"A case",
		h(
			"div",
			{ className: "bar" },
			h("label", {}, "case ", casePick),
			h("button", { type: "button", "aria-label": "previous case", onclick: () => step(-1) }, "←"),
			h("button", { type: "button", "aria-label": "next case", onclick: () => step(1) }, "→"),
			caseName,
		),
		guess,
		groupsBox,
		h(
			"div",
			{ className: "bar" },
			h("label", {}, "input ", inputNumber),
			h("label", {}, "= ", inputValue),
			resetButton,
		),
	);
	const content = h(
		"div",
		{},
		h(
			"div",
			{ className: "card" },
			h(
				"div",
				{ className: "bar" },
				h("h1", {}, "Network"),
				h("label", {}, "of ", pick),
				h("label", {}, "weights of ", checkpoint),
			),
			figures,
		),
		h(
			"div",
			{ className: "grid2" },
			h(
				"div",
				{},
				card(
					"Groups and blocks",
					structure,
					h("p", { className: "small soft" }, "Click an arrow to see its weights."),
				),
				card("Histogram", h("div", { className: "chart" }, histogram)),
			),
			caseCard,
		),
		h("p"),
		card(
			"Weights",
			h("div", { className: "bar" }, h("label", {}, "block ", blockPick), legend()),
			hinton.element,
			h(
				"p",
				{ className: "small soft" },
				"Rows are units that links lead to, columns those they come from; the area of a square is the weight.",
			),
		),
		card("Receptive fields", fieldsNote, fields),
		card("Histogram over time", h("div", { className: "chart" }, overTime), overTimeNote),
		h("div", { className: "grid2" }, confusionCard, worstCard),
	);
	const element = h("div", {}, empty, content);

	function legend() {
		const swatch = (name) => {
			const s = h("span", { className: "swatch" });
			s.style.background = `var(${name})`;
			return s;
		};
		return h("span", { className: "small soft" }, swatch("--plus"), "positive  ", swatch("--minus"), "negative");
	}
	const blocks = () => {
		const [, arrows] = levels(net);
		return [
			...arrows.map((b) => ({ ...b, to: b.to.replace(/\[.*$/, "") })),
			...net.blocks.filter((b) => b.from === "true").map((b) => ({ ...b, source: "true" })),
		].filter((b, i, all) => all.findIndex((o) => o.source === b.source && o.to === b.to) === i);
	};
	const groupOf = (name) =>
		name === "true" ? { name, first: 0, units: 1 } : links.groups.find((g) => g.name === name);

	function matrix(b) {
		const from = groupOf(b.source),
			to = groupOf(b.to);
		if (!from || !to) return null;
		const m = new Float32Array(from.units * to.units).fill(NaN);
		for (let i = 0; i < weights.length; i++) {
			const f = links.from[i] - from.first,
				t = links.to[i] - to.first;
			if (f >= 0 && f < from.units && t >= 0 && t < to.units) m[t * from.units + f] = weights[i];
		}
		return { from, to, m };
	}

	function drawStructure() {
		const all = blocks();
		structure.replaceChildren(
			structureSvg(net, all, block, (index) => {
				blockPick.value = index;
				block = all[index];
				drawWeights();
				drawStructure();
			}),
		);
	}

	function drawWeights() {
		const found = block && matrix(block);
		if (!found) return;
		hinton.set(found.to.units, found.from.units, found.m);
		const values = found.m.filter(Number.isFinite);
		drawHistogram(values);
		drawOverTime();
		drawFields();
	}

	const bins = (values, span) => {
		const out = new Float32Array(BINS);
		for (const v of values) out[Math.max(0, Math.min(BINS - 1, Math.floor(((v / span + 1) / 2) * BINS)))]++;
		return out;
	};
	const spanOf = (values) => values.reduce((m, v) => Math.max(m, Math.abs(v)), 1e-6);

	function drawHistogram(values) {
		const [ctx, width] = fit(histogram, 210),
			span = spanOf(values),
			b = bins(values, span),
			top = Math.max(...b);
		ctx.clearRect(0, 0, width, 210);
		const bar = (width - 20) / BINS,
			mean = values.reduce((s, v) => s + v, 0) / values.length;
		const sd = Math.sqrt(values.reduce((s, v) => s + (v - mean) ** 2, 0) / values.length);
		b.forEach((n, i) => {
			ctx.fillStyle = css(i < BINS / 2 ? "--minus" : "--plus");
			const tall = (160 * n) / top;
			ctx.fillRect(10 + i * bar + 0.5, 170 - tall, Math.max(1, bar - 1), tall);
		});
		ctx.fillStyle = css("--soft");
		ctx.font = "12px system-ui, sans-serif";
		ctx.strokeStyle = css("--line");
		ctx.beginPath();
		ctx.moveTo(10, 170.5);
		ctx.lineTo(width - 10, 170.5);
		ctx.stroke();
		ctx.textAlign = "left";
		ctx.fillText(num(-span, 3), 10, 187);
		ctx.textAlign = "center";
		ctx.fillText("0", width / 2, 187);
		ctx.textAlign = "right";
		ctx.fillText(num(span, 3), width - 10, 187);
		ctx.textAlign = "left";
		ctx.fillText(`${num(values.length)} weights, mean ${num(mean, 3)}, deviation ${num(sd, 3)}`, 10, 206);
		histogram.setAttribute(
			"aria-label",
			`histogram of ${values.length} weights from ${num(-span)} to ${num(span)}, ` +
				`mean ${num(mean)}, deviation ${num(sd)}`,
		);
	}

	function drawOverTime() {
		const [ctx, width] = fit(overTime, 210),
			list = history.filter((s) => s.run === run.name);
		ctx.clearRect(0, 0, width, 210);
		overTimeNote.textContent =
			list.length > 1
				? `${list.length} checkpoints, ${list[0].label} to ${list.at(-1).label}`
				: "Grows with every checkpoint while the run is trained; train --checkpoints-every N keeps older ones.";
		const all = list.map((s) => {
			const old = weights;
			weights = s.weights;
			const m = matrix(block)?.m.filter(Number.isFinite) ?? [];
			weights = old;
			return m;
		});
		const span = Math.max(1e-6, ...all.map(spanOf)),
			slice = (width - 50) / Math.max(1, list.length);
		all.forEach((values, i) => {
			const b = bins(values, span),
				top = Math.max(...b);
			b.forEach((n, k) => {
				ctx.fillStyle = css("--c0");
				ctx.globalAlpha = Math.sqrt(n / top);
				ctx.fillRect(
					45 + i * slice,
					190 - ((k + 1) * 180) / BINS,
					Math.max(1, slice - (slice > 6 ? 1 : 0)),
					180 / BINS + 0.3,
				);
			});
		});
		ctx.globalAlpha = 1;
		ctx.fillStyle = css("--soft");
		ctx.font = "12px system-ui, sans-serif";
		ctx.textAlign = "right";
		ctx.fillText(num(span, 2), 40, 20);
		ctx.fillText("0", 40, 104);
		ctx.fillText(num(-span, 2), 40, 190);
		overTime.setAttribute("aria-label", overTimeNote.textContent);
	}

	function drawFields() {
		const found = matrix(block);
		const source = net.groups.find((g) => g.name === block.source);
		fields.replaceChildren();
		if (!found || !source || found.from.units < 4) {
			fieldsNote.textContent = "Choose a block that comes from a group of several units.";
			return;
		}
		const columns = columnsFor(found.from.units),
			rows = Math.ceil(found.from.units / columns),
			most = Math.min(found.to.units, 64);
		const part = most < found.to.units ? `, the first ${most}` : "";
		const image = `${rows} × ${columns}`;
		fieldsNote.textContent = `Weights from ${block.source} (as ${image}) to each unit of ${block.to}${part}.`;
		for (let u = 0; u < most; u++) {
			const g = new Grid({
				label: `weights to ${block.to}[${u}]`,
				least: 3,
				most: 3.5,
				tip: (r, c, v) => `${block.source}[${r * columns + c}] → ${block.to}[${u}]: ${num(v)}`,
			});
			const values = found.m.slice(u * found.from.units, (u + 1) * found.from.units);
			g.most = Math.max(3, Math.min(12, Math.floor(112 / columns)));
			fields.append(
				h("figure", { style: "" }, g.element, h("figcaption", { className: "small soft" }, String(u))),
			);
			g.set(rows, columns, values);
		}
	}

	function step(by) {
		const most = net.cases;
		caseNumber = (caseNumber + by + most) % Math.max(1, most);
		casePick.value = caseNumber;
		changes.clear();
		activations();
	}

	async function activations() {
		const query = { run: run.index, case: caseNumber };
		if (epoch) query.epoch = epoch;
		if (changes.size) query.set = [...changes].map(([i, v]) => `${i}:${v}`).join(",");
		try {
			answer = await getJson("/api/activations", query);
		} catch (e) {
			note(e.message);
			return;
		}
		casePick.value = caseNumber;
		caseName.textContent = answer.name ?? "";
		resetButton.disabled = changes.size === 0;
		guess.replaceChildren(
			answer.guess !== undefined
				? h(
						"span",
						{},
						"The network says ",
						h("b", { id: "guess" }, answer.guess),
						answer.target === undefined ? "" : ", the target is ",
						h("b", {}, answer.target ?? ""),
						changes.size
							? ` (with ${changes.size} ${changes.size === 1 ? "input" : "inputs"} changed)`
							: "",
					)
				: "",
		);
		drawGroups();
	}

	function drawGroups() {
		let input = 0;
		groupsBox.replaceChildren(
			...answer.groups.map((g) => {
				const about = net.groups.find((o) => o.name === g.name),
					first = input,
					isInput = about.role === "input";
				if (isInput) input += about.units;
				const columns = columnsFor(g.values.length),
					rows = Math.ceil(g.values.length / columns);
				const values = isInput ? answer.inputs.slice(first, first + about.units) : g.values;
				const grid = new Grid({
					label: `activations of ${g.name}`,
					least: 6,
					most: 16,
					tip: (r, c, v) => `${g.name}[${r * columns + c}]: ${num(v)}${isInput ? "" : ""}`,
					onpick: isInput
						? (r, c) => {
								const i = r * columns + c;
								if (i < values.length) change(first + i, values[i]);
							}
						: undefined,
				});
				if (isInput)
					grid.marks = [...changes.keys()]
						.filter((i) => i >= first && i < first + about.units)
						.map((i) => i - first);
				const box = h(
					"div",
					{},
					h(
						"h3",
						{},
						g.name,
						h(
							"span",
							{ className: "soft small" },
							`  ${about.role === "input" ? "inputs: click to change" : about.function}`,
						),
					),
					about.role === "output" && answer.outputs ? outputs(g) : grid.element,
				);
				grid.set(rows, columns, values, Math.max(1, spanOf(values)));
				return box;
			}),
		);
	}

	function outputs(g) {
		const canvas = h("canvas", { className: "plain", role: "img" }),
			box = h("div", { className: "chart" }, canvas);
		const draw = later(() => {
			if (!box.isConnected) return;
			const [ctx, width] = fit(canvas, 120),
				n = g.values.length,
				t = answer.outputs.length === n ? answer.targets : null;
			const lo = Math.min(0, ...g.values),
				hi = Math.max(1, ...g.values),
				y = (v) => 104 - (92 * (v - lo)) / (hi - lo),
				bar = Math.min(30, (width - 4) / n);
			ctx.clearRect(0, 0, width, 120);
			g.values.forEach((v, i) => {
				ctx.fillStyle = css(v < 0 ? "--minus" : "--plus");
				ctx.fillRect(i * bar + 1, Math.min(y(v), y(0)), Math.max(1, bar - 2), Math.abs(y(v) - y(0)));
				if (t && t[i] !== null) {
					ctx.fillStyle = css("--ink");
					ctx.fillRect(i * bar, y(t[i]) - 1, bar, 2);
				}
			});
			ctx.strokeStyle = css("--line");
			ctx.beginPath();
			ctx.moveTo(0, y(0) + 0.5);
			ctx.lineTo(bar * n, y(0) + 0.5);
			ctx.stroke();
			ctx.fillStyle = css("--soft");
			ctx.font = "11px system-ui, sans-serif";
			ctx.fillText(t ? "bars: outputs, lines: targets" : "outputs", 0, 118);
			canvas.setAttribute("aria-label", `outputs of ${g.name}: ${g.values.map((v) => num(v, 2)).join(", ")}`);
		});
		new ResizeObserver(draw).observe(box);
		return box;
	}

	function change(i, now) {
		// 0 and 1 change places; other values are typed
		inputNumber.value = i;
		inputValue.value = now === 0 ? 1 : now === 1 ? 0 : now;
		if (now === 0 || now === 1) typed();
		else inputValue.focus();
	}
	function typed() {
		const i = Number(inputNumber.value),
			value = Number(inputValue.value);
		if (!Number.isInteger(i) || i < 0 || i >= net.inputs || !Number.isFinite(value)) return;
		changes.set(i, value);
		activations();
	}

	function wrongCase(r, c) {
		const found = measured.worst.find((w) => w.target === measured.classes[r] && w.guess === measured.classes[c]);
		if (found) showCase(found.case);
		else note("none of the worst cases is one of these");
	}
	function showCase(i) {
		caseNumber = i;
		changes.clear();
		activations();
		caseCard.scrollIntoView({ block: "nearest" });
	}

	async function measure() {
		measured = null;
		confusionCard.hidden = worstCard.hidden = true;
		if (!net.cases) {
			drawFigures();
			return;
		}
		try {
			measured = await getJson("/api/measure", { run: run.index, ...(epoch ? { epoch } : {}) });
		} catch (e) {
			drawFigures();
			return;
		}
		drawFigures();
		worstCard.hidden = false;
		confusionCard.hidden = !measured.confusion;
		if (measured.confusion) {
			const n = measured.classes.length;
			const order = measured.classes
				.map((name, i) => [name, i])
				.sort((a, b) => a[0].localeCompare(b[0], "en", { numeric: true }));
			const values = order.flatMap(([, r]) =>
				order.map(([, c]) => (r === c ? 1 : -1) * measured.confusion[r * n + c]),
			);
			measured.classes = order.map(([name]) => name);
			const wrong = values.reduce((s, v) => s + (v < 0 ? -v : 0), 0);
			confusionNote.textContent =
				`Rows: targets, columns: guesses, of ${num(measured.cases)} cases, ${num(wrong)} wrong. ` +
				"Click a cell to see such a case.";
			confusion.tip = (r, c, v) =>
				`${measured.classes[r]} taken for ${measured.classes[c]}: ` +
				num(Math.abs(v)) +
				(r === c ? " (right)" : "");
			confusion.set(n, n, values, Math.max(3, ...values.filter((v) => v < 0).map((v) => -v)));
		}
		worst.replaceChildren(
			h(
				"table",
				{},
				h(
					"thead",
					{},
					h(
						"tr",
						{},
						["case", "name", "target", "guess"].map((t) => h("th", { scope: "col" }, t)),
						h("th", { className: "n", scope: "col" }, "error"),
					),
				),
				h(
					"tbody",
					{},
					measured.worst.slice(0, 100).map((w) =>
						h(
							"tr",
							{
								className: "pick",
								tabIndex: 0,
								onclick: () => showCase(w.case),
								onkeydown: (e) => {
									if (e.key === "Enter") showCase(w.case);
								},
							},
							h("td", {}, String(w.case)),
							h("td", {}, w.name ?? ""),
							h("td", {}, w.target ?? ""),
							h("td", {}, w.guess ?? "", w.right ? "" : " ✗"),
							h("td", { className: "n" }, num(w.error)),
						),
					),
				),
			),
		);
	}

	function drawFigures() {
		const f = (value, name, id) => h("div", {}, h("b", id ? { id } : {}, value), h("span", {}, name));
		const m = measured ?? {};
		figures.replaceChildren(
			f(num(net.units), "units"),
			f(num(net.connections), "weights"),
			f(net.data || "–", `data${net.cases ? `, ${num(net.cases)} cases` : ""}`),
			f(num(m.error), "error", "net-error"),
			f(share(m.right), "right", "net-right"),
			f(share(m.within), "within the threshold"),
			h(
				"div",
				{},
				h("b", { className: "mono", id: "fingerprint" }, net.fingerprint),
				h("span", {}, "fingerprint"),
			),
		);
	}

	async function load(again) {
		const usable = app.runs.filter((r) => r.model);
		if (!usable.length) {
			content.hidden = true;
			empty.hidden = false;
			empty.replaceChildren(
				h("h1", {}, "No network yet"),
				h(
					"p",
					{},
					"A run has one when its first checkpoint is written, ten seconds after it begins or at its end.",
				),
				h(
					"p",
					{},
					h("code", {}, "microprop train example:letters --run runs/1"),
					h("br"),
					h("code", {}, "microprop view runs/1"),
				),
			);
			return;
		}
		content.hidden = false;
		empty.hidden = true;
		const chosen = pick.value;
		pick.replaceChildren(...usable.map((r) => h("option", { value: r.index }, r.name)));
		if (usable.some((r) => String(r.index) === chosen)) pick.value = chosen;
		const next = app.runs[Number(pick.value)],
			other = !run || run.name !== next.name;
		run = next;
		epoch = other ? 0 : Number(checkpoint.value || 0);
		const query = { run: run.index, ...(epoch ? { epoch } : {}) };
		let fresh;
		try {
			fresh = await getJson("/api/net", query);
		} catch (e) {
			note(e.message);
			return;
		}
		const key = `${run.name} ${epoch} ${fresh.stamp}`;
		if (!again && key === seen) return;
		seen = key;
		if (!links || !net || net.structure !== fresh.structure || other) links = await getJson("/api/links", query);
		weights = await getFloats("/api/weights", query);
		net = fresh;
		const value = checkpoint.value;
		checkpoint.replaceChildren(
			h("option", { value: 0 }, "the last checkpoint"),
			...net.checkpoints.map((e) => h("option", { value: e }, `epoch ${e}`)),
		);
		checkpoint.value = other ? "0" : value || "0";
		if (other) {
			block = null;
			changes.clear();
			caseNumber = 0;
			await past();
		}
		if (!epoch) history.push({ run: run.name, label: `epoch ${num(run.columns.epoch?.at(-1) ?? 0)}`, weights });
		const all = blocks();
		blockPick.replaceChildren(...all.map((b, i) => h("option", { value: i }, `${b.source} → ${b.to}`)));
		block = all.find((b) => block && b.source === block.source && b.to === block.to) ?? all[0];
		blockPick.value = all.indexOf(block);
		casePick.max = Math.max(0, net.cases - 1);
		inputNumber.max = net.inputs - 1;
		drawFigures();
		drawStructure();
		drawWeights();
		await activations();
		await measure();
	}

	// Checkpoints that were kept, for the histogram over time.
	async function past() {
		history = history.filter((s) => s.run !== run.name);
		const step = Math.ceil(net.checkpoints.length / 60) || 1;
		for (let i = 0; i < net.checkpoints.length; i += step)
			history.push({
				run: run.name,
				label: `epoch ${net.checkpoints[i]}`,
				weights: await getFloats("/api/weights", { run: run.index, epoch: net.checkpoints[i] }),
			});
	}

	let due = 0;
	app.listen((kind) => {
		// a run that is trained saves every few seconds
		if (!kind || !element.isConnected || Date.now() < due) return;
		due = Date.now() + 2000;
		load(false);
	});
	const show = () => load(!net);
	return {
		element,
		show,
		restyle: () => {
			if (net) {
				drawStructure();
				drawWeights();
				if (answer) drawGroups();
				confusion.draw();
			}
		},
	};
}
