// SPDX-License-Identifier: MIT
// Where a network is wrong: confusion matrix and worst cases.
import { h, num, card, note } from "./dom.js";
import { Grid } from "./grid.js";

const SHOWN = 100; // worst cases

export class Errors {
	// onpick: shows a case
	constructor(onpick) {
		this.onpick = onpick;
		this.confusion = new Grid({
			label: "confusion matrix",
			least: 5,
			most: 26,
			dim: true,
			tip: (r, c, v) =>
				`${this.classes[r]} taken for ${this.classes[c]}: ${num(Math.abs(v))}${r === c ? " (right)" : ""}`,
			onpick: (r, c) => this.pick(r, c),
		});
		this.about = h("p", { className: "small soft" });
		this.worst = h("div", { className: "scroll worst" });
		this.confusionCard = card("Confusion matrix", this.about, this.confusion.element);
		this.worstCard = card("Worst cases", this.worst);
	}

	// measured: as /api/measure has it; null: there are no cases
	set(measured) {
		this.measured = measured;
		this.worstCard.hidden = !measured;
		this.confusionCard.hidden = !measured?.confusion;
		if (measured?.confusion) this.drawConfusion();
		if (measured) this.drawWorst();
	}

	// Classes in the order of their names; right ones above 0, wrong ones below.
	drawConfusion() {
		const { classes, confusion, cases } = this.measured,
			n = classes.length;
		const order = classes
			.map((name, i) => [name, i])
			.sort((a, b) => a[0].localeCompare(b[0], "en", { numeric: true }));
		const values = order.flatMap(([, r]) => order.map(([, c]) => (r === c ? 1 : -1) * confusion[r * n + c]));
		const wrong = values.map((v) => Math.max(0, -v));
		this.classes = this.confusion.names = order.map(([name]) => name);
		this.about.textContent =
			`Rows: targets, columns: guesses, of ${num(cases)} cases, ${num(wrong.reduce((s, v) => s + v, 0))} wrong. ` +
			"Click a red cell to see such a case.";
		this.confusion.set(
			n,
			n,
			values,
			wrong.reduce((m, v) => Math.max(m, v), 3),
		);
	}

	pick(r, c) {
		const found = this.measured.worst.find((w) => w.target === this.classes[r] && w.guess === this.classes[c]);
		if (found) this.onpick(found.case);
		else note(r === c ? "These cases are right." : "No such case is among the worst.");
	}

	drawWorst() {
		const shown = this.measured.worst.slice(0, SHOWN),
			named = shown.some((w) => w.name),
			guessed = shown.some((w) => w.guess !== undefined);
		const row = (w) =>
			h(
				"tr",
				{
					className: "pick",
					tabIndex: 0,
					onclick: () => this.onpick(w.case),
					onkeydown: (e) => {
						if (e.key === "Enter") this.onpick(w.case);
					},
				},
				h("td", {}, String(w.case)),
				named && h("td", {}, w.name ?? ""),
				guessed && h("td", {}, w.target ?? ""),
				guessed && h("td", {}, w.guess ?? ""),
				h("td", {}, w.right ? "right" : "✗ wrong"),
				h("td", { className: "n" }, num(w.error)),
			);
		this.worst.replaceChildren(
			h(
				"table",
				{},
				h(
					"thead",
					{},
					h(
						"tr",
						{},
						["case", named && "name", guessed && "target", guessed && "guess", ""]
							.filter((t) => t !== false)
							.map((t) => h("th", { scope: "col" }, t)),
						h("th", { className: "n", scope: "col" }, "error"),
					),
				),
				h("tbody", {}, shown.map(row)),
			),
		);
	}

	draw() {
		this.confusion.draw();
	}
}
