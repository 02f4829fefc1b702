// SPDX-License-Identifier: MIT
// A worker that runs the program: single commands, training in slices, or the answers of `view`. One message, one
// answer with its id; a training run sends lines of metrics and files in between.
"use strict";
importScripts("program.js", "microprop.js");

const FIRST = 0.1,
	LONGEST = 1; // seconds of a slice: between two, a stop is seen
const loaded = WebAssembly.compileStreaming(fetch("microprop.wasm")).then((compiled) =>
	programLoad(microprop, compiled),
);
let stopping = false,
	desk = null;

const pause = () => new Promise((done) => setTimeout(done));
const result = (text) => {
	try {
		return JSON.parse(text);
	} catch {
		return null;
	}
};

// A slice is `train --time`, and the next resumes from its checkpoint: bits do not depend on where it is cut.
async function train({ id, args, files, folder, seconds }) {
	const { run } = await loaded;
	const checkpoint = `${folder}/last.safetensors`;
	let slice = FIRST,
		r;
	stopping = false;
	for (;;) {
		seconds += slice;
		const resume = files[checkpoint] ? ["--resume", checkpoint] : [];
		r = await run([...args, "--run", folder, "--time", String(seconds), "--json", "--quiet", ...resume], {
			files,
			folder,
			line: (text) => postMessage({ id, line: text }),
		});
		const json = result(r.out);
		files = { ...files, ...r.files };
		postMessage({ id, slice: json, files: r.files });
		if (r.status || !json || json.stopped_by !== "time" || stopping) break;
		seconds = Math.max(seconds, json.seconds);
		slice = Math.min(LONGEST, slice * 1.5);
		await pause();
	}
	return { status: r.status, out: r.out, err: r.err, seconds, stopped: stopping };
}

const tasks = {
	train,
	run: async ({ args, files, folder }) => (await loaded).run(args, { files, folder }),
	put: async ({ files }) => {
		desk ??= await (await loaded).desk("runs");
		for (const [p, b] of Object.entries(files)) desk.put(p, b);
		return {};
	},
	answer: async ({ path, post, query, body }) => {
		desk ??= await (await loaded).desk("runs");
		return desk.answer(path, post, query, body);
	},
};

let last = Promise.resolve(); // one at a time, in order
onmessage = ({ data }) => {
	if (data.task === "stop") {
		stopping = true;
		return;
	}
	last = last.then(async () => {
		try {
			postMessage({ id: data.id, done: await tasks[data.task](data) });
		} catch (e) {
			postMessage({ id: data.id, failed: String(e?.message ?? e) });
		}
	});
};
