// SPDX-License-Identifier: MIT
// Exported ONNX files in onnxruntime: node ort.mjs FOLDER NAME...; exit 0 if all outputs are within 1e-6 of those of predict,
// or, in the plain form (NAME-plain), within 1e-6 or what float32 allows.
import fs from "fs";
import path from "path";
import { createRequire } from "module";
const ort = createRequire(path.resolve(process.argv[2]) + "/")("onnxruntime-web");
ort.env.wasm.numThreads = 1;
const loose = { spirals: 2e-5, letters: 3e-6, house: 5e-6 };
const rows = file => fs.readFileSync(file, "utf8").trim().split("\n").map(line => line.split(",").map(Number));
const tensor = (type, values, dims) =>
	new ort.Tensor(type, type == "float64" ? Float64Array.from(values) : Float32Array.from(values), dims);
const wide = { mixed: "float64", house: "float64" };
let wrong = 0;
for (const file of process.argv.slice(3)) {
	const name = file.replace("-plain", ""), x = rows(`${name}.x`), y = rows(`${name}.y`), type = wide[name] || "float32";
	const session = await ort.InferenceSession.create(`${file}.onnx`);
	const states = session.inputNames.filter(n => n != "x");
	let outputs = [];
	if (states.length) {
		let feeds = Object.fromEntries(states.map(n => [n, tensor("float32", Array(4).fill(0.5), [1, 4])])); // temporal-xor
		for (const row of x) {
			const out = await session.run({ x: tensor(type, row, [1, row.length]), ...feeds });
			feeds = Object.fromEntries(states.map(n => [n, out[n.replace("state/", "next/")]]));
			outputs.push(...out.y.data);
		}
	} else {
		outputs = (await session.run({ x: tensor(type, x.flat(), [x.length, x[0].length]) })).y.data;
	}
	let worst = 0;
	y.flat().forEach((v, i) => {
		const off = Math.abs(outputs[i] - v) / Math.max(1, Math.abs(v));
		worst = off <= worst ? worst : off;
	});
	console.log(`onnxruntime ${file}: ${x.length} cases, ${worst}`);
	wrong += !(worst <= (file != name && loose[name] || 1e-6));
}
process.exit(wrong ? 1 : 0);
