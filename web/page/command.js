// SPDX-License-Identifier: MIT
// The command line in the page: the words after `microprop`, and what it prints.
import { h, note } from "./dom.js";
import { command } from "./serverless.js";

const ready = [
	["gf11 run dot", "the routine dot: its cycles, a checksum of memory"],
	["gf11 microcode dot", "its schedule, a line for each cycle"],
	["gf11 ops", "operations of a processor"],
	["gf11 report", "what the report of 1989 says, and whether it holds"],
	["gf11 model example:letters", "the performance model"],
	["gf11 machine", "every parameter of the machine"],
	["show example:xor --stage program", "a network as the cpu executes it"],
	["train example:xor --json", "a small network"],
	["help", "all commands"],
];

// Words as a shell makes them, with quotes.
const words = (text) =>
	(text.match(/"[^"]*"|'[^']*'|\S+/g) ?? []).map((w) => (/^(".*"|'.*')$/.test(w) ? w.slice(1, -1) : w));

export async function open() {
	const line = h("input", {
		type: "text",
		className: "mono",
		id: "command-line",
		spellcheck: false,
		autocomplete: "off",
		"aria-label": "words after microprop",
	});
	const run = h("button", { type: "submit", className: "main" }, "Run");
	const out = h("pre", {
			className: "output",
			id: "command-output",
			tabIndex: 0,
			"aria-label": "output",
			"aria-live": "polite",
		}),
		state = h("p", { className: "soft small", role: "status" });
	const files = h("input", { type: "file", multiple: true, "aria-label": "files that the command reads" });

	async function go(event) {
		event?.preventDefault();
		const args = words(line.value.replace(/^\s*microprop\s/, ""));
		const given = {};
		run.disabled = true;
		state.textContent = "running…";
		delete out.dataset.status;
		try {
			for (const f of files.files) given[f.name] = new Uint8Array(await f.arrayBuffer());
			const before = performance.now(),
				r = await command(args, given);
			out.textContent = r.out + r.err;
			out.dataset.status = r.status;
			state.textContent = `exit status ${r.status}, ${((performance.now() - before) / 1000).toFixed(2)} s`;
		} catch (e) {
			note(e.message);
			state.textContent = "";
		}
		run.disabled = false;
	}

	const pick = ([text, about]) =>
		h(
			"li",
			{},
			h(
				"button",
				{
					type: "button",
					onclick: () => {
						line.value = text;
						go();
					},
				},
				h("code", {}, text),
			),
			h("span", { className: "soft small" }, ` ${about}`),
		);
	line.value = ready[0][0];
	const element = h(
		"div",
		{},
		h(
			"section",
			{ className: "card", "aria-label": "Command line" },
			h("h1", {}, "Command line"),
			h(
				"form",
				{ className: "bar command", onsubmit: go },
				h("label", { className: "wide" }, h("code", {}, "microprop "), line),
				run,
			),
			h("label", { className: "small" }, "files ", files),
			h(
				"details",
				{ open: true },
				h("summary", {}, "Commands to begin with"),
				h("ul", { className: "plain" }, ready.map(pick)),
			),
		),
		h("section", { className: "card", "aria-label": "Output" }, state, out),
	);
	return { element };
}
