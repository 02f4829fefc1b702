// SPDX-License-Identifier: MIT
// Exported modules against what predict gave: node compare.mjs NAME...; exit 0 if all outputs are within 1e-6.
import fs from "fs";
import path from "path";
const rows = file => fs.readFileSync(file, "utf8").trim().split("\n").map(line => line.split(",").map(Number));
let wrong = 0;
for (const name of process.argv.slice(2)) {
	const { Network } = await import(path.resolve(`${name}.mjs`));
	const network = new Network(), x = rows(`${name}.x`), y = rows(`${name}.y`);
	let worst = 0;
	x.forEach((row, i) => network.step(row).forEach((v, k) => {
		const off = Math.abs(v - y[i][k]) / Math.max(1, Math.abs(y[i][k]));
		worst = off <= worst ? worst : off;
	}));
	console.log(`${name}: ${x.length} cases, ${worst}`);
	wrong += !(worst <= 1e-6) || x.length != y.length;
}
process.exit(wrong ? 1 : 0);
