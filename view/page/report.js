// SPDX-License-Identifier: MIT
// Table 1 and figures 8 to 11 of the report of 1989, beside the simulation.
import { h, num, card, choice, colour } from "./dom.js";
import { Chart } from "./plot.js";

const titles = {
	8: "Figure 8: MCPS, ring sum",
	9: "Figure 9: ms of an epoch, ring sum",
	10: "Figure 10: MCPS, tree sum",
	11: "Figure 11: ms of an epoch, tree sum",
};
// Columns of the figure's CSV file, and their names here.
const speeds = { model_mcps: "model", measured_1989_mcps: "measured 1989", simulated_mcps: "simulated" };
const times = {
	model_total_ms: "model, total",
	model_computation_ms: "model, computation",
	model_communication_ms: "model, communication",
	measured_1989_total_ms: "measured 1989",
	simulated_total_ms: "simulated",
};

export class Figure {
	constructor(onchange) {
		this.pick = choice("figure", Object.keys(titles), "10", onchange);
		this.chart = new Chart({
			title: titles[10],
			xTitle: "processors",
			legend: true,
			controls: h("label", { className: "small" }, "figure ", this.pick),
		});
		this.element = this.chart.element;
	}
	get number() {
		return this.pick.value;
	}

	set(csv, number) {
		this.shown = [csv, number];
		const [head, ...rows] = csv
			.trim()
			.split("\n")
			.map((l) => l.split(","));
		const isTime = number === "9" || number === "11";
		this.chart.series = Object.entries(isTime ? times : speeds).map(([key, name], i) => {
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
		this.chart.logX = this.chart.logY = isTime;
		this.chart.rename(titles[number]);
		this.chart.draw();
	}
	// In the colours of now.
	draw() {
		if (this.shown) this.set(...this.shown);
	}
}

export class Table1 {
	constructor() {
		this.note = h("p", { className: "small soft" }, "Simulating an epoch for every cell…");
		this.table = h("div", { className: "scroll" });
		this.element = card("Table 1: MCPS of NETtalk", this.note, this.table);
	}

	// changed: parameters that are not those of the report
	set(rows, changed) {
		this.note.textContent = changed.size
			? `With ${[...changed].map(([k, v]) => `${k} ${v}`).join(", ")}, instead of the machine of the report.`
			: "The report's figures beside ours.";
		const titles = ["processors", "sum", "report", "simulated", "difference", "model", "limit"];
		const difference = (r) => (r.paper === null ? "–" : `${r.error_pct > 0 ? "+" : ""}${num(r.error_pct, 2)} %`);
		const right = (...content) => h("td", { className: "n" }, ...content);
		this.table.replaceChildren(
			h(
				"table",
				{},
				h(
					"thead",
					{},
					h(
						"tr",
						{},
						titles.map((t) => h("th", { className: t === "sum" ? "" : "n", scope: "col" }, t)),
					),
				),
				h(
					"tbody",
					{},
					rows.map((r) =>
						h(
							"tr",
							{},
							right(String(r.procs)),
							h("td", {}, r.sum),
							right(num(r.paper)),
							right(h("b", {}, num(r.sim1989))),
							right(difference(r)),
							right(num(r.model)),
							right(num(r.limit)),
						),
					),
				),
			),
		);
	}
}
