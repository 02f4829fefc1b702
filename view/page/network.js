// SPDX-License-Identifier: MIT
// A trained network: structure, weights, activations of a case that can be changed, receptive fields, errors.
import { h, num, share, card, getJson, getFloats, note } from "./dom.js";
import { Case } from "./case.js";
import { Errors } from "./errors.js";
import { levels, structureSvg } from "./structure.js";
import { Weights } from "./weights.js";

const PAST = 60; // checkpoints that were kept, of which histograms are drawn

// Blocks that can be chosen, one for each pair of groups; bias weights last.
function blocksOf(net) {
	const [, arrows] = levels(net);
	return [
		...arrows.map((b) => ({ ...b, to: b.to.replace(/\[.*$/, "") })),
		...net.blocks.filter((b) => b.from === "true").map((b) => ({ ...b, source: "true" })),
	].filter((b, i, all) => all.findIndex((o) => o.source === b.source && o.to === b.to) === i);
}

// What the measures of these targets are called; the keys of /api/measure.
const measures = {
	bits: [
		["accuracy", "patterns right"],
		["bits_right", "bits right"],
	],
	numbers: [["within", "within the threshold"]],
	other: [
		["right", "right"],
		["within", "within the threshold"],
	],
};

export async function open(app) {
	let net = null,
		links = null,
		weights = null,
		run = null,
		block = null,
		past = [], // { label, weights } of checkpoints of this run
		seen = "";

	const pick = h("select", { "aria-label": "run", onchange: () => load(true) });
	const checkpoint = h("select", { "aria-label": "checkpoint", onchange: () => load(true) });
	const figures = h("div", { className: "figures" });
	const structure = h("div", { className: "scroll" });
	const ofBlock = new Weights(choose),
		one = new Case(),
		errors = new Errors((number) => {
			one.show(number);
			one.element.scrollIntoView({ block: "nearest" });
		});
	const empty = h("div", { className: "card empty" });
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
				ofBlock.histogramCard,
			),
			one.element,
		),
		ofBlock.cards,
		h("div", { className: "grid2" }, errors.confusionCard, errors.worstCard),
	);
	const element = h("div", {}, empty, content);

	function choose(index) {
		const blocks = blocksOf(net);
		block = blocks[index];
		structure.replaceChildren(structureSvg(net, blocks, block, choose));
		ofBlock.choose(blocks, index);
	}

	function drawFigures(measured) {
		const f = (value, name, id) => h("div", {}, h("b", id ? { id } : {}, value), h("span", {}, name));
		const m = measured ?? {};
		figures.replaceChildren(
			f(num(net.units), "units"),
			f(num(net.connections), "weights"),
			h(
				"div",
				{ title: net.data },
				h("b", {}, net.data.split("/").at(-1) || "–"),
				h("span", {}, `data${net.cases ? `, ${num(net.cases)} cases` : ""}`),
			),
			f(num(m.error), "error", "net-error"),
			...(measures[m.kind] ?? measures.other).map(([key, name]) => f(share(m[key]), name, `net-${key}`)),
			h(
				"div",
				{ className: "wide" },
				h("b", { className: "mono", id: "fingerprint" }, net.fingerprint),
				h("span", {}, "fingerprint"),
			),
		);
	}

	function showEmpty() {
		empty.replaceChildren(
			h("h1", {}, "No network yet"),
			h("p", {}, "A run has one when its first checkpoint is written, ten seconds after it begins or at its end."),
			h(
				"p",
				{},
				h("code", {}, "microprop train example:letters --run runs/1"),
				h("br"),
				h("code", {}, "microprop view runs/1"),
			),
		);
	}

	function choices() {
		const usable = app.runs.filter((r) => r.model),
			chosen = pick.value;
		content.hidden = !usable.length;
		empty.hidden = usable.length > 0;
		if (!usable.length) showEmpty();
		pick.replaceChildren(...usable.map((r) => h("option", { value: r.index }, r.name)));
		if (usable.some((r) => String(r.index) === chosen)) pick.value = chosen;
		return usable.length > 0;
	}

	// again: also if the checkpoint is that which is shown
	async function load(again) {
		if (!choices()) return;
		const next = app.runs[Number(pick.value)],
			other = run?.path !== next.path,
			epoch = other ? 0 : Number(checkpoint.value || 0);
		run = next;
		const query = { run: run.index, ...(epoch ? { epoch } : {}) };
		try {
			const fresh = await getJson("/api/net", query);
			const key = `${run.path} ${epoch} ${fresh.stamp}`;
			if (!again && key === seen) return;
			seen = key;
			if (!links || net?.structure !== fresh.structure || other) links = await getJson("/api/links", query);
			weights = await getFloats("/api/weights", query);
			net = fresh;
			if (other) past = await kept();
		} catch (e) {
			note(e.message);
			return;
		}
		checkpoint.replaceChildren(
			h("option", { value: 0 }, "the last checkpoint"),
			...net.checkpoints.map((e) => h("option", { value: e }, `epoch ${e}`)),
		);
		checkpoint.value = String(epoch);
		const label = `epoch ${num(run.columns.epoch?.at(-1) ?? 0)}`;
		if (!epoch && past.at(-1)?.label !== label) past.push({ label, weights });
		ofBlock.set(net, links, weights, past);
		const blocks = blocksOf(net);
		choose(Math.max(0, other ? 0 : blocks.findIndex((b) => b.source === block?.source && b.to === block?.to)));
		drawFigures(null);
		await one.set(net, query, other);
		const measured = net.cases ? await getJson("/api/measure", query).catch(() => null) : null;
		drawFigures(measured);
		errors.set(measured);
	}

	// Checkpoints that were kept, for the histogram over time.
	async function kept() {
		const list = [],
			step = Math.ceil(net.checkpoints.length / PAST) || 1;
		for (let i = 0; i < net.checkpoints.length; i += step)
			list.push({
				label: `epoch ${num(net.checkpoints[i])}`,
				weights: await getFloats("/api/weights", { run: run.index, epoch: net.checkpoints[i] }),
			});
		return list;
	}

	let due = 0;
	app.listen(() => {
		// a run that is trained saves every few seconds
		if (!element.isConnected || Date.now() < due) return;
		due = Date.now() + 2000;
		load(false);
	});
	return {
		element,
		show: () => load(!net),
		restyle: () => {
			if (!net) return;
			choose(Number(ofBlock.pick.value));
			one.draw();
			errors.draw();
		},
	};
}
