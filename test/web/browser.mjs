#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// build/web in chromium: trains letters, runs every routine of the GF11, opens every view; compares with the native
// program.
//   node test/web/browser.mjs       needs build/web, chromium, build/browser (make check-all); SHOTS=DIR: screenshots
import { spawnSync } from "node:child_process";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { existsSync, readFileSync, statSync } from "node:fs";
import { extname, join } from "node:path";

const root = new URL("../..", import.meta.url).pathname,
	folder = join(root, "build/web"),
	shots = process.env.SHOTS;
const chromium = process.env.CHROMIUM ?? "/usr/bin/chromium";
for (const [path, what] of [
	[folder, "build/web: make web"],
	[chromium, "chromium"],
	[join(root, "build/browser/node_modules"), "puppeteer-core"],
])
	if (!existsSync(path)) {
		console.log(`page: skipped, there is no ${what}`);
		process.exit(0);
	}
const puppeteer = createRequire(join(root, "build/browser/"))("puppeteer-core");

let failed = 0;
const check = (what, have, want) => {
	if (have !== want) {
		failed++;
		console.log(`page: ${what}: ${have} instead of ${want}`);
	}
};
const native = (...args) =>
	JSON.parse(spawnSync(join(root, "build/microprop"), args, { cwd: root, maxBuffer: 1 << 26 }).stdout);

// A plain static server, in a folder below the top, as project pages have it.
const types = {
	".html": "text/html",
	".js": "text/javascript",
	".css": "text/css",
	".wasm": "application/wasm",
	".svg": "image/svg+xml",
	".json": "application/json",
};
const missing = [];
const server = createServer((q, a) => {
	const path = join(folder, decodeURIComponent(new URL(q.url, "http://x").pathname).replace(/^\/site/, ""));
	const file = q.url.endsWith("/") ? join(path, "index.html") : path;
	if (!q.url.startsWith("/site/") || !file.startsWith(folder) || !existsSync(file) || !statSync(file).isFile()) {
		missing.push(q.url);
		a.writeHead(404).end();
		return;
	}
	a.writeHead(200, { "Content-Type": types[extname(file)] ?? "text/plain" }).end(readFileSync(file));
});
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
const address = `http://127.0.0.1:${server.address().port}/site/`;

const browser = await puppeteer.launch({
	executablePath: chromium,
	headless: true,
	args: ["--no-sandbox"],
	protocolTimeout: 600000,
});
const page = await browser.newPage();
page.on("console", (m) => {
	if (["error", "warn"].includes(m.type())) {
		failed++;
		console.log(`page: console: ${m.text()}`);
	}
});
page.on("pageerror", (e) => {
	failed++;
	console.log(`page: ${e}`);
});
const shot = async (name) => {
	if (shots) await page.screenshot({ path: join(shots, `${name}.png`), fullPage: true });
};
const open = async (name) => {
	await page.evaluate((n) => {
		location.hash = n;
	}, name);
	await page.waitForFunction(
		(n) =>
			document.querySelector(`nav a[href="#${n}"]`).hasAttribute("aria-current") &&
			document.getElementById("main").children.length > 0,
		{},
		name,
	);
	await new Promise((done) => setTimeout(done, 1500));
};

async function train(example, options) {
	await page.select('select[aria-label="example"]', example);
	await page.waitForFunction(
		(e) => document.getElementById("train-command").textContent.includes(e),
		{},
		`${example}.topo`,
	);
	await page.$eval(
		'input[aria-label="more options"]',
		(e, v) => {
			e.value = v;
			e.dispatchEvent(new Event("input"));
		},
		options,
	);
	await page.click("#train-start");
	await page.waitForFunction(() => document.body.dataset.trained === "1", { timeout: 600000 });
	return page.$eval("#train-fingerprint", (e) => e.textContent);
}

await page.setViewport({ width: 1280, height: 900 });
await page.goto(address, { waitUntil: "load" });
await page.waitForFunction(() => document.body.dataset.ready === "1", { timeout: 120000 });
for (const [example, options] of [
	["xor", ""],
	["encoder-8-3-8", "--epochs 100"],
	["letters", ""],
	["xor", "--target gf11 --epochs 20"],
]) {
	const want = native(
		"train",
		`examples/${example}.topo`,
		...options.split(" ").filter(Boolean),
		"--json",
		"--quiet",
	).fingerprint;
	check(`${example} ${options}`, await train(example, options), want);
	if (example === "letters") await shot("trained");
}
check(
	"letters",
	native("train", "examples/letters.topo", "--json", "--quiet").fingerprint,
	"758a46f7bbe022e210edc0b9e808eff1",
);

// Stop, and go on from there.
await page.select('select[aria-label="example"]', "letters");
await page.$eval('input[aria-label="more options"]', (e) => {
	e.value = "--until never --epochs 100000";
});
await page.click("#train-start");
await page.waitForFunction(() => Number(document.getElementById("train-epochs")?.textContent) >= 1, {
	timeout: 120000,
});
await page.click("#train-stop");
await page.waitForFunction(() => document.body.dataset.trained === "1", { timeout: 120000 });

const routines = native("gf11", "efficiency", "--routines", "--json").routines.map((r) => r.name);
const sums = await page.evaluate(async (names) => {
	const { command } = await import("./serverless.js"),
		out = {};
	for (const name of names) out[name] = JSON.parse((await command(["gf11", "run", name, "--json"])).out).checksum;
	return out;
}, routines);
for (const name of routines)
	check(`checksum of ${name}`, sums[name], native("gf11", "run", name, "--json").checksum);
console.log(`page: ${routines.length} checksums, 4 fingerprints`);

const views = await page.$$eval("nav a", (list) => list.map((a) => a.hash.slice(1)));
for (const view of views) {
	await open(view);
	if (view === "command") {
		await page.click("form.command button");
		await page.waitForFunction(() => document.getElementById("command-output").dataset.status === "0", {
			timeout: 60000,
		});
	}
	await shot(view);
	check(`message in ${view}`, await page.$eval("#note", (e) => (e.hidden ? "" : e.textContent)), "");
}
const rows = await page.evaluate(async () => (await (await fetch("/api/runs")).json()).runs.length);
check("runs", rows, 5);
await page.click("#theme");
await open("train");
await shot("train-dark");
await page.setViewport({ width: 390, height: 844 });
for (const view of views) {
	await open(view);
	await shot(`${view}-phone`);
	check(
		`width of ${view} on a phone`,
		await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
		true,
	);
}
check("files that are missing", missing.join(" "), "");
await browser.close();
server.close();
console.log(failed ? `page: ${failed} wrong` : `page: ${views.length} views, no errors`);
process.exit(failed ? 1 : 0);
