// SPDX-License-Identifier: MIT
// The program as WebAssembly: a command line and files in, output and files out. For workers (importScripts) and node.
"use strict";

const programText = (bytes) => new TextDecoder().decode(Uint8Array.from(bytes)); // bytes may be below zero
const LINK = 0o120777; // mode of a symbolic link
const programParent = (path) => path.slice(0, path.lastIndexOf("/"));

// make: the factory of microprop.js; compiled: its WebAssembly.Module. Every command gets an instance of its own.
function programLoad(make, compiled) {
	async function start(files) {
		const out = [],
			err = [];
		const instance = await make({
			thisProgram: "microprop",
			instantiateWasm(imports, done) {
				WebAssembly.instantiate(compiled, imports).then((i) => done(i, compiled));
				return {};
			},
			stdout: (byte) => out.push(byte),
			stderr: (byte) => err.push(byte),
			stdin: () => null,
			quit(status, e) {
				throw e;
			},
		});
		const open = instance.FS.lookupPath("/proc/self/fd").node,
			find = open.node_ops.lookup;
		// emscripten leaves the mode out, and cannot open such a file
		open.node_ops = { ...open.node_ops, lookup: (...of) => Object.assign(find(...of), { mode: LINK }) };
		for (const [path, bytes] of Object.entries(files ?? {})) put(instance, path, bytes);
		return { instance, out, err };
	}

	function put(instance, path, bytes) {
		if (programParent(path)) instance.FS.mkdirTree(programParent(path));
		instance.FS.writeFile(path, bytes);
	}

	function folderRead(FS, path, files) {
		let names;
		try {
			names = FS.readdir(path);
		} catch {
			return;
		} // it was not made
		for (const name of names) {
			if (name === "." || name === "..") continue;
			const at = `${path}/${name}`;
			if (FS.isDir(FS.stat(at).mode)) folderRead(FS, at, files);
			else files[at] = FS.readFile(at);
		}
	}

	// args: words after `microprop`. files: { path: text or bytes }. folder: its files come back. line(text): lines of
	// metrics.jsonl as they are written.
	async function run(args, { files, folder, line } = {}) {
		const { instance, out, err } = await start(files);
		const FS = instance.FS,
			write = FS.write;
		let metrics = "";
		FS.write = (stream, buffer, offset, length, ...rest) => {
			if (line && stream.path?.endsWith("/metrics.jsonl")) {
				metrics += programText(buffer.slice(offset, offset + length));
				const lines = metrics.split("\n");
				metrics = lines.pop();
				lines.forEach((l) => line(l));
			}
			return write(stream, buffer, offset, length, ...rest);
		};
		let status = 1,
			failed = "";
		try {
			status = instance.callMain(args);
		} catch (e) {
			failed = `${e}\n`; // out of memory, an assertion
		}
		const back = {};
		if (folder) folderRead(FS, folder, back);
		return { status, out: programText(out), err: programText(err) + failed, files: back };
	}

	// The answers that `microprop view FOLDER` would give a page, without a server.
	async function desk(folder) {
		const { instance, err } = await start();
		const call = (name, kind, types, ...values) => instance.ccall(name, kind, types, values);
		instance.FS.mkdirTree(folder);
		instance.callMain(["view", folder]);
		return {
			messages: () => programText(err),
			put: (path, bytes) => put(instance, path, bytes),
			answer(path, post, query, body) {
				const status = call(
					"desk_answer",
					"number",
					["string", "boolean", "string", "string"],
					path,
					post,
					JSON.stringify(query),
					body,
				);
				const at = call("desk_body", "number", []),
					length = call("desk_length", "number", []);
				return {
					status,
					type: call("desk_type", "string", []),
					body: instance.HEAPU8.slice(at, at + length),
				};
			},
		};
	}

	return { run, desk };
}

if (typeof module === "object") module.exports = { programLoad };
