// SPDX-License-Identifier: MIT
// The page in a real browser: node browser.mjs MICROPROP FOLDER, with puppeteer-core beside it or in NODE_PATH.
// A run is trained meanwhile; every view is opened; numbers of the page are those of --json; no message on the console.
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { createRequire } from "node:module";

const [program, folder] = process.argv.slice(2);
const puppeteer = createRequire(join(folder, "x.js"))("puppeteer-core");
const browserPath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
const problems = [],
	runDir = join(folder, "run"),
	small = join(folder, "small");
const check = (ok, text) => {
	console.log(`${ok ? "ok  " : "FAIL"} ${text}`);
	if (!ok) problems.push(text);
};
const json = (...words) =>
	JSON.parse(spawnSync(program, [...words, "--json"], { encoding: "utf8", maxBuffer: 1 << 28 }).stdout);
const wait = (ms) => new Promise((r) => setTimeout(r, ms));

rmSync(runDir, { recursive: true, force: true });
rmSync(small, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
json("train", "example:semantics", "--run", small, "--checkpoints-every", "200");
const trainer = spawn(program, [
	"train",
	"example:letters",
	"--until",
	"never",
	"--epochs",
	"1000000",
	"--time",
	"300",
	"--threads",
	"1",
	"--run",
	runDir,
	"--every",
	"1",
	"--json",
]);
let result = "";
trainer.stdout.on("data", (d) => {
	result += d;
});
const trained = new Promise((r) => {
	trainer.on("exit", r);
});
for (let i = 0; i < 300 && !existsSync(join(runDir, "last.safetensors")); i++) await wait(100);
const server = spawn(program, ["view", runDir, small, "--control", "--json"]);
const { url } = JSON.parse(
	await new Promise((r) => {
		server.stdout.once("data", (d) => r(String(d)));
	}),
);

const browser = await puppeteer.launch({
	executablePath: browserPath,
	args: ["--no-sandbox", "--disable-gpu", "--force-prefers-reduced-motion"],
});
await (await browser.newPage()).goto(url.split("#")[0]); // a browser that has just begun paints late
const page = await browser.newPage();
page.setDefaultTimeout(120000);
page.on("console", (m) => {
	if (m.type() === "error" || m.type() === "warn") check(false, `console: ${m.text()}`);
});
page.on("pageerror", (e) => check(false, `page: ${e.message}`));
page.on("response", (r) => {
	if (r.status() >= 400) check(false, `${r.status()} ${r.url()}`);
});
await page.setViewport({ width: 1300, height: 900 });
await page.goto(url);
await page.waitForSelector("body[data-ready]");
const paint = await page.evaluate(
	() => performance.getEntriesByType("paint").find((e) => e.name === "first-contentful-paint")?.startTime,
);
console.log(`first paint ${Math.round(paint)} ms`);
const text = (selector) => page.$eval(selector, (e) => e.textContent);
const shot = (name) => page.screenshot({ path: join(folder, `${name}.png`), fullPage: true });
check(!(await page.evaluate(() => location.href)).includes(url.split("#")[1]), "the token has left the address");

// ---- runs: the curve moves while the run is trained ----
const epochs = async () => Number(/epoch ([\d,]+)/.exec(await text('[data-run="0"]'))[1].replaceAll(",", ""));
const label = () => page.$eval('section[aria-label="Error"] canvas', (e) => e.getAttribute("aria-label"));
const before = await epochs(),
	labelBefore = await label();
for (let i = 0; i < 300 && (await epochs()) === before; i++) await wait(100);
check((await epochs()) > before && (await label()) !== labelBefore, "the curve moves while the run is trained");
check((await text('[data-run="0"]')).includes("training"), "the run is marked as being trained");
check(
	await page.$$eval("tr.differs th", (l) => l.some((e) => e.textContent === "topology")),
	"options that differ are marked",
);
await shot("runs");
await page.evaluate(() =>
	[...document.querySelectorAll("button")].find((b) => b.textContent === "Stop and save").click(),
);
await trained;
await page.waitForFunction(() => document.querySelector('[data-run="0"]').textContent.includes("Resume"));
const last = JSON.parse(result);
check((await epochs()) === last.epochs, `the page has the last epoch, ${last.epochs}`);

// ---- network: numbers of `test --json` ----
const num = (v) => page.evaluate(async (x) => (await import("/dom.js")).num(x), v);
await page.click('nav a[href="#network"]');
await page.waitForFunction(() => document.getElementById("net-error")?.textContent.match(/\d/));
const tested = json("test", join(runDir, "last.safetensors"), "make:letters");
check((await text("#fingerprint")) === last.fingerprint, `fingerprint ${last.fingerprint}`);
check((await text("#net-error")) === (await num(tested.error)), `error ${await num(tested.error)}`);
const guess = await text("#guess");
await page.evaluate(() => {
	// an input of the middle letter
	const canvas = document.querySelector('canvas[aria-label^="activations of window"]'),
		box = canvas.getBoundingClientRect(),
		size = box.width / 29;
	for (let k = 0; k < 29; k++)
		canvas.dispatchEvent(
			new MouseEvent("click", {
				clientX: box.left + (k + 0.5) * size,
				clientY: box.top + 3.5 * size,
				bubbles: true,
			}),
		);
});
await page.waitForFunction(() => document.body.textContent.includes("inputs changed"));
check(typeof guess === "string" && guess.length > 0, `a guess is shown (${guess})`);
await shot("network");
await page.select('select[aria-label="run"]', "1");
await page.waitForFunction(() => document.body.textContent.includes("checkpoints, epoch"));

// ---- resumed and stopped from the page ----
const press = (name) =>
	page.evaluate(
		(t) => [...document.querySelectorAll('[data-run="0"] button')].find((b) => b.textContent === t).click(),
		name,
	);
await page.click('nav a[href="#runs"]');
const ended = await epochs();
await press("Resume");
await page.waitForFunction(() => document.querySelector('[data-run="0"]').textContent.includes("training"));
for (let i = 0; i < 600 && (await epochs()) <= ended; i++) await wait(100);
check((await epochs()) > ended, "a run is resumed from the page");
await press("Stop and save");
await page.waitForFunction(() => document.querySelector('[data-run="0"]').textContent.includes("Resume"));

// ---- machine: numbers of `gf11 --json` ----
await page.click('nav a[href="#machine"]');
await page.waitForFunction(() => document.querySelectorAll('section[aria-label^="Table 1"] tbody tr').length > 10);
const sweep = json("gf11", "sweep", "procs=512", "--sum", "tree").rows[0];
check((await text("#epoch-cycles")) === (await num(sweep.cycles)), `cycles of an epoch ${sweep.cycles}`);
check((await text("#mcps")) === (await num(sweep.mcps)), `MCPS ${sweep.mcps}`);
const routine = json("gf11", "program", "--procs", "512", "--sum", "tree").routines.find((r) => r.name === "forward");
check(
	(await page.$eval('canvas[aria-label^="schedule"]', (e) => e.getAttribute("aria-label"))).includes(
		` in ${await num(routine.cycles)} cycles`,
	),
	`schedule of ${routine.cycles} cycles`,
);
await page.evaluate(() => {
	const s = document.querySelector('input[aria-label="alu-latency"]');
	s.value = 40;
	s.dispatchEvent(new Event("input"));
	s.dispatchEvent(new Event("change"));
});
await page.waitForFunction(
	(old) => document.getElementById("epoch-cycles").textContent !== old,
	{},
	await num(sweep.cycles),
);
check(true, "an epoch follows a parameter");
await page.evaluate(() => [...document.querySelectorAll("button")].find((b) => b.textContent === "Diagnose").click());
await page.waitForFunction(() => document.body.textContent.includes("2 of 2 found"));
check(true, "the diagnosis finds both faults");
await shot("machine");

// ---- NETtalk ----
await page.click('nav a[href="#nettalk"]');
await page.waitForFunction(() => document.body.textContent.includes("After 22,560 updates"));
check(parseFloat(await text("#talk-right")) > 99, `NETtalk: ${await text("#talk-right")} right`);
check(
	await page.evaluate(async () => {
		const m = await import("/speech.js"),
			s = m.synthesize([["r>", "E1", "d<"]]);
		return s.length > 3000 && s.every(Number.isFinite) && Math.max(...s) > 0.5;
	}),
	"speech has sound",
);
await shot("nettalk");

// ---- phone, dark, names of controls ----
await page.setViewport({ width: 390, height: 800 });
await page.click("#theme");
for (const name of ["runs", "network", "machine", "nettalk"]) {
	await page.click(`nav a[href="#${name}"]`);
	await wait(600);
	check(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${name} fits a phone`);
	const nameless = await page.$$eval("main button, main input, main select, main canvas", (l) =>
		l
			.filter(
				(e) =>
					e.offsetParent && !(e.getAttribute("aria-label") || e.closest("label") || e.textContent.trim()),
			)
			.map((e) => e.outerHTML.slice(0, 80)),
	);
	check(nameless.length === 0, `${name}: every control has a name ${nameless.join(" ")}`);
	await shot(`phone-${name}`);
}
await browser.close();
server.kill("SIGTERM");
await new Promise((r) => {
	server.on("exit", r);
});
const module = join(program, "..", "microprop-view.so");
if (existsSync(module)) check(statSync(module).size < 1.5e6, `the module has ${statSync(module).size} bytes`);
console.log(problems.length ? `${problems.length} problems` : "all as it should be");
process.exit(problems.length ? 1 : 0);
