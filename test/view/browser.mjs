// SPDX-License-Identifier: MIT
// The page in a real browser: node browser.mjs MICROPROP FOLDER, with puppeteer-core beside it or in NODE_PATH.
// A run is trained meanwhile; every view is opened; numbers of the page are those of --json; no message on the console.
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync, statSync, writeFileSync } from "node:fs";
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

const children = [];
const start = (...words) => {
	const child = spawn(program, words);
	children.push(child);
	return child;
};
process.on("exit", () => {
	for (const c of children) c.kill("SIGKILL"); // those that a failure has left
});

rmSync(runDir, { recursive: true, force: true });
rmSync(small, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
json("train", "example:semantics", "--run", small, "--checkpoints-every", "200");
const endless = "train example:letters --until never --epochs 1000000 --time 300 --threads 1".split(" ");
const trainer = start(...endless, "--run", runDir, "--every", "1", "--json");
let result = "";
trainer.stdout.on("data", (d) => {
	result += d;
});
const trained = new Promise((r) => {
	trainer.on("exit", r);
});
for (let i = 0; i < 300 && !existsSync(join(runDir, "last.safetensors")); i++) await wait(100);
// A line of what a process prints: stdout of view, stderr of train --view.
const lineOf = (stream, wanted) =>
	new Promise((r) => {
		let text = "";
		stream.on("data", (d) => {
			text += d;
			const line = text.split("\n").slice(0, -1).find((l) => l.includes(wanted)); // a whole one
			if (line) r(line);
		});
	});
const server = start("view", runDir, small, "--control", "--json");
const { url } = JSON.parse(await lineOf(server.stdout, "}"));

const browser = await puppeteer.launch({
	executablePath: browserPath,
	args: ["--no-sandbox", "--disable-gpu", "--force-prefers-reduced-motion"],
});
await (await browser.newPage()).goto(url.split("#")[0]); // a browser that has just begun paints late
async function newPage(address) {
	const p = await browser.newPage();
	p.setDefaultTimeout(120000);
	p.on("console", (m) => {
		if (m.type() === "error" || m.type() === "warn") check(false, `console: ${m.text()}`);
	});
	p.on("pageerror", (e) => check(false, `page: ${e.message}`));
	p.on("response", (r) => {
		if (r.status() >= 400) check(false, `${r.status()} ${r.url()}`);
	});
	await p.setViewport({ width: 1300, height: 900 });
	await p.goto(address);
	await p.waitForSelector("body[data-ready]");
	return p;
}
const page = await newPage(url);
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
for (let i = 0; i < 300 && ((await epochs()) === before || (await label()) === labelBefore); i++) await wait(100);
check((await epochs()) > before && (await label()) !== labelBefore, "the curve moves while the run is trained");
check((await text('[data-run="0"]')).includes("training"), "the run is marked as being trained");
check(
	await page.$$eval("tr.differs th", (l) => l.some((e) => e.textContent === "topology")),
	"options that differ are marked",
);
await shot("runs");
const press = (name, within = "main") =>
	page.evaluate(
		(t, w) => [...document.querySelectorAll(`${w} button`)].find((b) => b.textContent === t).click(),
		name,
		within,
	);
await press("Stop and save", '[data-run="0"]');
await trained;
await page.waitForFunction(() => document.querySelector('[data-run="0"]').textContent.includes("Resume"));
const last = JSON.parse(result);
check((await epochs()) === last.epochs, `the page has the last epoch, ${last.epochs}`);

// ---- what a chart saves, in all its settings ----
const error = 'section[aria-label="Error"]';
await page.evaluate(() => {
	globalThis.saved = [];
	const make = URL.createObjectURL;
	URL.createObjectURL = (blob) => {
		globalThis.saved.push(blob);
		return make.call(URL, blob);
	};
});
for (const kind of ["CSV", "SVG", "PNG"]) await press(kind, error);
await page.waitForFunction(() => globalThis.saved.length === 3);
const [csv, svg] = await page.evaluate(() => Promise.all(globalThis.saved.slice(0, 2).map((b) => b.text())));
const ofSmall = json("train", "example:semantics").error;
const lines = csv.trim().split("\n");
check(lines[0] === "epoch,run,small", `CSV: ${lines[0]}`);
check(Number(lines.at(-1).split(",")[2]) === ofSmall, `CSV: the last error of semantics, ${ofSmall}`);
check(svg.startsWith("<svg") && svg.includes(">small</text>") && !svg.includes("NaN"), "SVG has the curves");
check(await page.evaluate(() => globalThis.saved[2].type === "image/png" && globalThis.saved[2].size > 2000), "PNG");
const tick = (name) =>
	page.evaluate(
		(n) => [...document.querySelectorAll("label")].find((l) => l.textContent.includes(n)).querySelector("input").click(),
		name,
	);
await tick("log x");
await tick("log y");
await page.evaluate(() => {
	const s = document.querySelector('input[aria-label="smoothing"]');
	s.value = 0.8;
	s.dispatchEvent(new Event("input"));
});
await page.focus(`${error} canvas`);
for (const key of ["+", "+", "ArrowRight", "-", "0", "+"]) await page.keyboard.press(key);
await wait(200);
await shot("runs-log");
await press("all", error);
await tick("log x");
await tick("log y");

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
const outputs = () => page.$eval('canvas[aria-label^="outputs of"]', (e) => e.getAttribute("aria-label"));
await press("Undo changes");
await page.waitForFunction(() => !document.body.textContent.includes("inputs changed"));
const untouched = await outputs();
await page.evaluate(() => {
	// typed: the first letter of the window
	const set = (name, v) => {
		const e = document.querySelector(`input[aria-label="${name}"]`);
		e.value = v;
		e.dispatchEvent(new Event("change"));
	};
	set("number of the input", 87);
	set("value of the input", 1);
});
await page.waitForFunction(() => document.body.textContent.includes("1 input changed"));
check((await outputs()) !== untouched, "outputs follow an input that is typed");
const worst = await text(".worst tbody td");
await page.click(".worst tbody tr");
await page.waitForFunction((v) => document.querySelector('input[aria-label="case"]').value === v, {}, worst);
check(true, `a click shows the worst case, ${worst}`);
await shot("network");
await page.select('select[aria-label="run"]', "1");
await page.waitForFunction(() => document.body.textContent.includes("checkpoints, epoch"));

// ---- resumed and stopped from the page ----
await page.click('nav a[href="#runs"]');
await page.waitForFunction(() => /epoch [\d,]+/.test(document.querySelector('[data-run="0"]')?.textContent ?? ""));
const ended = await epochs();
await press("Resume", '[data-run="0"]');
await page.waitForFunction(() => document.querySelector('[data-run="0"]').textContent.includes("training"));
for (let i = 0; i < 600 && (await epochs()) <= ended; i++) await wait(100);
check((await epochs()) > ended, "a run is resumed from the page");
await press("Stop and save", '[data-run="0"]');
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
const timeline = await page.$eval('canvas[aria-label^="timeline"]', (e) => e.getAttribute("aria-label"));
check(timeline.includes(` in ${await num(sweep.cycles)} cycles`), timeline);
const switchText = () => text('section[aria-label="The switch"] p');
for (const [kind, steps] of [
	["ring", [0]],
	["halving", [0, 8]],
	["random", [1]],
	["tree", [0, 9]],
]) {
	await page.select('select[aria-label="permutation"]', kind);
	for (const k of steps) {
		const was = await switchText();
		await page.$eval(
			'input[aria-label="step"]',
			(e, v) => {
				e.value = v;
				e.dispatchEvent(new Event("input"));
			},
			k,
		);
		if (k) await page.waitForFunction((t) => document.body.textContent.includes(t), {}, ` ${k}: `);
		else await page.waitForFunction((t) => !document.body.textContent.includes(t), {}, was);
	}
	check(
		new RegExp(kind === "halving" ? "512 routes" : "(566|576) routes").test(await switchText()),
		`routes of ${kind}, ${await switchText()}`,
	);
}
// A parameter moves: all follow, Table 1 too.
const slide = (name, v) =>
	page.$eval(
		`input[aria-label="${name}"]`,
		(e, value) => {
			e.value = value;
			e.dispatchEvent(new Event("input"));
			e.dispatchEvent(new Event("change"));
		},
		v,
	);
await slide("alu-latency", 40);
await page.waitForFunction(
	(old) => document.getElementById("epoch-cycles").textContent !== old,
	{},
	await num(sweep.cycles),
);
await page.waitForFunction(() => document.body.textContent.includes("With alu-latency 40"));
const slow = join(folder, "slow.machine");
writeFileSync(slow, "base gf11\nalu-latency 40 cycles assumed\n");
const cell = json("gf11", "table1", "--compiler", "1989", "--machine", slow).rows.find(
	(r) => r.procs === 512 && r.sum === "tree",
);
const shown = await page.$$eval('section[aria-label^="Table 1"] tbody tr', (rows) =>
	rows.map((r) => [...r.children].map((c) => c.textContent)).find((c) => c[0] === "512" && c[1] === "tree"),
);
check(shown[3] === (await num(cell.sim1989)), `Table 1 follows a parameter: ${shown[3]} MCPS`);
const moved = json("gf11", "sweep", "procs=512", "--sum", "tree", "--machine", slow).rows[0];
check((await text("#epoch-cycles")) === (await num(moved.cycles)), `and an epoch: ${moved.cycles} cycles`);
// Faults: two are there, a click puts in a third.
await page.evaluate(() => {
	const canvas = document.querySelector('canvas[aria-label^="processors"]'),
		box = canvas.getBoundingClientRect(),
		size = box.width / 24;
	canvas.dispatchEvent(
		new MouseEvent("click", { clientX: box.left + 10.5 * size, clientY: box.top + 10.5 * size, bubbles: true }),
	);
});
check((await text('section[aria-label="Faults"]')).includes("dead:250 ×"), "a click puts a fault in");
await press("Diagnose");
await page.waitForFunction(() => document.body.textContent.includes("3 of 3 found"));
check(true, "the diagnosis finds all three faults");
await shot("machine");
// A long routine, moved and zoomed: how long a picture takes.
await page.select('select[aria-label="compiler"]', "best");
await page.waitForFunction(() => !document.querySelector('section[aria-label="Schedule"]').classList.contains("busy"));
const longest = await page.$eval('select[aria-label="routine"]', (e) => {
	const cycles = (o) => Number((/: ([\d,]+) cycles/.exec(o.textContent)?.[1] ?? "0").replaceAll(",", ""));
	const most = [...e.options].reduce((m, o) => (cycles(o) > cycles(m) ? o : m));
	e.value = most.value;
	e.dispatchEvent(new Event("change"));
	return cycles(most);
});
await page.waitForFunction(
	(c) =>
		document
			.querySelector('canvas[aria-label^="schedule"]')
			.getAttribute("aria-label")
			.includes(` in ${c.toLocaleString("en-US")} cycles`),
	{},
	longest,
);
await page.focus('canvas[aria-label^="schedule"]');
const frames = await page.evaluate(async () => {
	const canvas = document.querySelector('canvas[aria-label^="schedule"]');
	const key = (k) => canvas.dispatchEvent(new KeyboardEvent("keydown", { key: k, bubbles: true }));
	const began = performance.now();
	for (let i = 0; i < 60; i++) {
		key(i < 20 ? "+" : i < 40 ? "ArrowRight" : "-");
		await new Promise(requestAnimationFrame);
	}
	return (performance.now() - began) / 60;
});
console.log(`a schedule of ${longest} cycles, moved and zoomed: ${frames.toFixed(1)} ms a picture`);

// ---- NETtalk ----
await page.click('nav a[href="#nettalk"]');
await page.waitForFunction(() => document.body.textContent.includes("After 22,560 updates"));
const sounds = () =>
	page.$$eval('section[aria-label="Words"] tbody button', (l) => l.map((b) => b.textContent).join(""));
const stage = (n) =>
	page.$eval(
		'input[aria-label="stage of learning"]',
		(e, v) => {
			e.value = v;
			e.dispatchEvent(new Event("input"));
		},
		n,
	);
const learnt = await sounds();
await stage(0);
await page.waitForFunction(() => document.body.textContent.includes("After 0 updates"));
for (let i = 0; i < 100 && (await sounds()) === learnt; i++) await wait(50);
check((await sounds()) !== learnt, `babble ${await sounds()}, speech ${learnt}`);
await stage(11);
await page.waitForFunction(() => document.body.textContent.includes("After 22,560 updates"));
await page.$eval('input[aria-label="words"]', (e) => {
	e.value = "a quick test";
	e.dispatchEvent(new Event("input"));
});
await page.waitForFunction(
	() => document.querySelectorAll('section[aria-label="Words"] tbody button').length === 10,
);
check(
	(await page.$$eval('section[aria-label="Articulatory features"] tbody tr', (l) => l.length)) === 26,
	"26 articulatory features",
);
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

// ---- keys ----
for (const [key, name] of ["runs", "network", "machine", "nettalk"].map((n, i) => [String(i + 1), n])) {
	await page.keyboard.press(key);
	await page.waitForFunction((n) => location.hash === `#${n}`, {}, name);
}
await page.evaluate(() => document.activeElement.blur());
await page.keyboard.press("?");
check(await page.$eval("#keys", (e) => e.open), "? lists the keys");
await page.keyboard.press("Escape");

// ---- dark and light, wide and as narrow as a phone; names of controls ----
for (const theme of ["dark", "light"]) {
	await page.evaluate(() => document.activeElement.blur());
	if ((await page.evaluate(() => document.documentElement.dataset.theme)) !== theme) await page.keyboard.press("t");
	check((await page.evaluate(() => document.documentElement.dataset.theme)) === theme, `t: ${theme}`);
	for (const width of [1300, 375])
		for (const name of ["runs", "network", "machine", "nettalk"]) {
			await page.setViewport({ width, height: 800 });
			await page.evaluate((n) => {
				location.hash = n;
			}, name);
			await wait(600);
			check(
				await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
				`${name} fits ${width} pixels`,
			);
			await shot(`${name}-${theme}-${width}`);
			const nameless = await page.$$eval("main button, main input, main select, main canvas", (l) =>
				l
					.filter(
						(e) =>
							e.offsetParent &&
							!(e.getAttribute("aria-label") || e.closest("label") || e.textContent.trim()),
					)
					.map((e) => e.outerHTML.slice(0, 80)),
			);
			check(nameless.length === 0, `${name}: every control has a name ${nameless.join(" ")}`);
		}
}

// ---- train --view: norms, and a checkpoint when the page asks for one ----
const watched = join(folder, "watched");
rmSync(watched, { recursive: true, force: true });
const live = start(...endless, "--view", "--control", "--every", "1000", "--run", watched);
const own = await newPage((await lineOf(live.stderr, "view: ")).replace("view: ", ""));
await own.waitForSelector('section[aria-label="Gradient norm"] canvas');
check(!existsSync(join(watched, "last.safetensors")), "there is no checkpoint yet");
const pressOwn = (name) =>
	own.evaluate((t) => [...document.querySelectorAll("main button")].find((b) => b.textContent === t).click(), name);
await pressOwn("Save");
for (let i = 0; i < 300 && !existsSync(join(watched, "last.safetensors")); i++) await wait(100);
check(existsSync(join(watched, "last.safetensors")), "the page has a checkpoint saved");
await own.screenshot({ path: join(folder, "watched.png"), fullPage: true });
for (const name of ["network", "machine", "nettalk", "runs"]) {
	await own.evaluate((n) => {
		location.hash = n;
	}, name);
	await own.waitForFunction((n) => document.querySelector("nav a[aria-current]").hash === `#${n}`, {}, name);
	await wait(500);
	await own.waitForFunction(() => !document.querySelector("main .busy"));
}
const gone = new Promise((r) => {
	live.on("exit", (code) => r(code));
});
await pressOwn("Stop and save");
await gone;
await own.waitForFunction(() => document.body.textContent.includes("the run has ended"));
await own.close();
check(true, "and stops the run, which it says");

// ---- a page without runs ----
const bare = start("view", "--json");
const nothing = await newPage(JSON.parse(await lineOf(bare.stdout, "}")).url);
check((await nothing.evaluate(() => location.hash)) === "#machine", "without runs it shows the machine");
for (const [name, wanted] of [
	["runs", "No run yet"],
	["network", "No network yet"],
]) {
	await nothing.evaluate((n) => {
		location.hash = n;
	}, name);
	await nothing.waitForFunction((t) => document.querySelector("main").textContent.includes(t), {}, wanted);
}
check(true, "and says how to make one");
await nothing.close();
bare.kill("SIGTERM");
await browser.close();
server.kill("SIGTERM");
await new Promise((r) => {
	server.on("exit", r);
});
const module = join(program, "..", "microprop-view.so");
if (existsSync(module)) check(statSync(module).size < 1.5e6, `the module has ${statSync(module).size} bytes`);
console.log(problems.length ? `${problems.length} problems` : "all as it should be");
process.exit(problems.length ? 1 : 0);
