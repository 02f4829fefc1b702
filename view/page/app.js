// SPDX-License-Identifier: MIT
// The frame: the token becomes a cookie, addresses after # choose a view, one event stream serves all views.
import { h, post, getJson, note } from "./dom.js";

const main = document.getElementById("main"),
	state = document.getElementById("state");
const views = {
	...globalThis.moreViews,
	runs: "./runs.js",
	network: "./network.js",
	machine: "./machine.js",
	nettalk: "./nettalk.js",
};
const opened = {};
export const listeners = new Set(); // of events: fn(kind, data)

function theme(next) {
	const root = document.documentElement;
	const now = next ?? (root.dataset.theme === "dark" ? "light" : "dark");
	root.dataset.theme = now;
	try {
		localStorage.setItem("theme", now);
	} catch {
		/* private windows */
	}
	for (const view of Object.values(opened)) view.restyle?.();
}

function themeStart() {
	let kept = null;
	try {
		kept = localStorage.getItem("theme");
	} catch {
		/* private windows */
	}
	document.documentElement.dataset.theme =
		kept ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
}

async function session() {
	const token = /^#([0-9a-f]{32})$/.exec(location.hash);
	if (!token) return;
	history.replaceState(null, "", "/#runs");
	await post("/api/session", { token: token[1] });
}

let shown = null;
async function route() {
	const name = Object.hasOwn(views, location.hash.slice(1)) ? location.hash.slice(1) : "runs";
	for (const a of document.querySelectorAll("nav a")) {
		if (a.hash === "#" + name) a.setAttribute("aria-current", "page");
		else a.removeAttribute("aria-current");
	}
	document.title = `${name === "nettalk" ? "NETtalk" : name} – microprop`;
	try {
		if (!opened[name]) {
			const module = await import(views[name]);
			opened[name] = await module.open(app);
		}
	} catch (e) {
		note(e.message);
		return;
	}
	if (shown && shown !== opened[name]) shown.hide?.();
	shown = opened[name];
	main.replaceChildren(shown.element);
	shown.show?.();
}

// Runs, kept up to date by the event stream: columns of numbers by name.
export const app = {
	about: {},
	runs: [],
	full: false, // there are more runs than these
	listen: (fn) => listeners.add(fn),
	go: (name) => {
		location.hash = name;
	},
};

function lineAdd(run, text) {
	let line;
	try {
		line = JSON.parse(text);
	} catch {
		return;
	}
	if (typeof line !== "object" || !line || !Number.isFinite(line.epoch)) return;
	const epochs = (run.columns.epoch ??= []);
	while (epochs.length && epochs.at(-1) >= line.epoch)
		// a resumed run repeats epochs
		for (const column of Object.values(run.columns)) column.pop();
	const n = epochs.length;
	for (const [key, value] of Object.entries(line)) {
		if (typeof value !== "number" && value !== null) continue;
		const column = (run.columns[key] ??= new Array(n).fill(NaN));
		column.push(value ?? NaN);
	}
	for (const column of Object.values(run.columns)) if (column.length === n) column.push(NaN);
}

// Runs have the names of their folders, without the folders that all of them are in.
function nameRuns(runs) {
	const parts = runs.map((r) => r.name.split("/"));
	const least = runs.length ? Math.min(...parts.map((p) => p.length - 1)) : 0;
	let shared = 0;
	while (shared < least && parts.every((p) => p[shared] === parts[0][shared])) shared++;
	runs.forEach((r, i) => {
		r.path = r.name;
		r.name = parts[i].slice(shared).join("/");
	});
}

async function runsLoad() {
	const { runs, full } = await getJson("/api/runs");
	app.full = full;
	nameRuns(runs);
	await Promise.all(
		runs.map(async (r, i) => {
			const known = app.runs[i];
			Object.assign(r, { index: i, columns: known?.columns ?? {}, position: known?.position ?? 0 });
			if (known || !r.curve) return;
			const text = await (await fetch(`/api/metrics?run=${i}`)).text();
			const lines = text.split("\n");
			r.position = Number(lines[0]);
			for (const line of lines.slice(1)) if (line) lineAdd(r, line);
		}),
	);
	app.runs = runs;
	tell("runs");
}

function tell(kind, data) {
	for (const fn of listeners) fn(kind, data);
}

function eventsStart() {
	const source = new EventSource("/api/events?from=" + app.runs.map((r) => r.position).join(","));
	source.addEventListener("open", () => {
		state.textContent = "";
	});
	source.addEventListener("error", () => {
		state.textContent = "not connected";
	});
	source.addEventListener("line", (e) => {
		const at = e.data.indexOf(" "),
			run = app.runs[Number(e.data.slice(0, at))];
		if (!run) return;
		lineAdd(run, e.data.slice(at + 1));
		tell("line", run);
	});
	source.addEventListener("runs", async (e) => {
		const live = JSON.parse(e.data);
		if (app.about.trains && !live[0]) {
			source.close(); // the server is the trainer, and ends with it
			for (const r of app.runs) r.live = false;
			state.textContent = "the run has ended";
			tell("runs");
		} else if (live.length !== app.runs.length || app.runs.some((r, i) => r.live !== (live[i] === 1)))
			await runsLoad().catch((x) => note(x.message));
	});
}

function keys() {
	const dialog = document.getElementById("keys");
	document.getElementById("theme").addEventListener("click", () => theme());
	document.getElementById("help").addEventListener("click", () => dialog.showModal());
	document.addEventListener("keydown", (e) => {
		if (e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName)) return;
		const name = Object.keys(views)[Number(e.key) - 1];
		if (name) location.hash = name;
		else if (e.key === "t") theme();
		else if (e.key === "?") dialog.showModal();
	});
}

async function start() {
	themeStart();
	keys();
	try {
		await session();
		app.about = await getJson("/api/about");
		await runsLoad();
	} catch (e) {
		main.replaceChildren(
			h(
				"div",
				{ className: "card empty" },
				h("h1", {}, "This page needs its token"),
				h(
					"p",
					{},
					"Open the whole address that ",
					h("code", {}, "microprop view"),
					" printed, with the letters and digits after the #.",
				),
				h("p", { className: "small" }, e.message),
			),
		);
		return;
	}
	addEventListener("hashchange", route);
	eventsStart();
	if (!app.runs.length && (!location.hash || location.hash === "#runs"))
		history.replaceState(null, "", "#machine");
	await route();
	document.body.dataset.ready = "1";
}
start();
