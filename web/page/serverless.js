// SPDX-License-Identifier: MIT
// The page without a server: requests to /api/ and the event stream of `microprop view` are answered by workers that
// run the program. One worker answers about runs and networks, one simulates the machine, one trains.

class Helper {
	// a worker; one call at a time, in order
	constructor() {
		this.worker = new Worker(new URL("worker.js", import.meta.url));
		this.calls = new Map();
		this.next = 0;
		this.worker.onmessage = ({ data }) => {
			const call = this.calls.get(data.id);
			if (data.done === undefined && data.failed === undefined) {
				call.on(data);
				return;
			}
			this.calls.delete(data.id);
			if (data.done) call.resolve(data.done);
			else call.reject(new Error(data.failed));
		};
		this.worker.onerror = (e) => {
			for (const call of this.calls.values())
				call.reject(new Error(e.message || "the program could not be loaded"));
			this.calls.clear();
		};
	}

	call(task, data, on) {
		return new Promise((resolve, reject) => {
			const id = this.next++;
			this.calls.set(id, { resolve, reject, on });
			this.worker.postMessage({ ...data, task, id });
		});
	}

	post(task) {
		this.worker.postMessage({ task });
	}
}

const started = {};
const helper = (name) => (started[name] ??= new Helper());

// One command of the program: words after `microprop`. Returns { status, out, err, files }.
export const command = (args, files, folder) => helper("machine").call("run", { args, files, folder });

// ---- runs ----

const runs = new Map(); // by name: { args, files, lines, seconds, live, sent }
const sources = new Set();
let names = [],
	training = null;

const tell = (kind, data) => {
	for (const s of sources) s.dispatchEvent(new MessageEvent(kind, { data }));
};
const tellRuns = () =>
	tell(
		"runs",
		JSON.stringify(names.map((n) => (runs.get(n)?.live ? 1 : 0)).concat(runs.size > names.length ? [1] : [])),
	);

async function train(name, run, watch) {
	const put = (files) => helper("desk").call("put", { files });
	training = name;
	run.live = true;
	let done;
	try {
		done = await helper("trainer").call(
			"train",
			{ args: run.args, files: run.files, folder: name, seconds: run.seconds },
			(news) => {
				if (news.line) run.lines.push(news.line);
				if (news.files) {
					Object.assign(run.files, news.files);
					runs.set(name, run); // from the first checkpoint on it is listed
					put(news.files).then(tellRuns);
				}
				watch?.(news);
			},
		);
		run.seconds = done.seconds;
	} finally {
		run.live = false;
		training = null;
	}
	tellRuns();
	return done;
}

export const busy = () => training !== null;
export const stop = () => helper("trainer").post("stop");
export const runFiles = (name) => runs.get(name)?.files ?? {};

// args: `train FILE ...`; files: what FILE and its data are. watch: news of the worker. Returns its name and result.
export async function begin(title, args, files, watch) {
	let n = 1;
	while (runs.has(`runs/${title}-${n}`)) n++;
	const name = `runs/${title}-${n}`;
	const done = await train(name, { args, files: { ...files }, lines: [], seconds: 0, sent: Infinity }, watch);
	return { name, ...done };
}

setInterval(() => {
	// lines after those that /api/metrics has given
	names.forEach((name, i) => {
		const run = runs.get(name);
		for (; run && run.sent < run.lines.length; run.sent++) tell("line", `${i} ${run.lines[run.sent]}`);
	});
}, 150);

// ---- requests ----

const own = {
	"/api/about": (about) => ({ ...about, control: true }),
	"/api/runs": ({ runs: list }) => {
		names = list.map((r) => r.name);
		return { runs: list.map((r) => ({ ...r, live: runs.get(r.name)?.live ?? false })) };
	},
};

function control({ run, action }) {
	const name = names[run];
	if (action === "stop" && runs.get(name)?.live) stop();
	else if (action === "resume" && runs.has(name) && !busy()) train(name, runs.get(name));
	else return [409, { error: busy() ? "another run is being trained" : "there is no such run" }];
	tellRuns();
	return [200, {}];
}

const json = (value, status = 200) =>
	new Response(JSON.stringify(value), { status, headers: { "Content-Type": "application/json" } });

async function answer(address, options) {
	const url = new URL(address, location.href),
		post = options?.method === "POST";
	if (url.pathname === "/api/control") {
		const [status, value] = control(JSON.parse(options.body));
		return json(value, status);
	}
	const query = Object.fromEntries(url.searchParams);
	const r = await helper(url.pathname === "/api/gf11" ? "machine" : "desk").call("answer", {
		path: url.pathname,
		post,
		query,
		body: options?.body ?? "",
	});
	if (r.status === 200 && own[url.pathname])
		return json(own[url.pathname](JSON.parse(new TextDecoder().decode(r.body))));
	if (url.pathname === "/api/metrics") {
		const run = runs.get(names[Number(query.run)]);
		if (run) run.sent = Math.max(0, run.lines.length - 1);
	}
	return new Response(r.body, { status: r.status, headers: { "Content-Type": r.type } });
}

const fetchReal = globalThis.fetch.bind(globalThis);
globalThis.fetch = (address, options) =>
	typeof address === "string" && address.startsWith("/api/")
		? answer(address, options)
		: fetchReal(address, options);
globalThis.EventSource = class extends EventTarget {
	constructor() {
		super();
		sources.add(this);
		setTimeout(() => this.dispatchEvent(new Event("open")));
	}
	close() {
		sources.delete(this);
	}
};

// Views that only this page has.
globalThis.moreViews = { train: "./train.js", command: "./command.js" };
if (!location.hash) history.replaceState(null, "", "#train");
