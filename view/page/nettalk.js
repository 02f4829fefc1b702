// SPDX-License-Identifier: MIT
// NETtalk: a network learns to read aloud; words are transcribed and spoken at each stage of learning.
import { h, num, share, card, getJson, post, note, colour, save, css } from "./dom.js";
import { Chart } from "./plot.js";
import { synthesize, speak, stopSpeaking, wav } from "./speech.js";

const features = [
	"Front1",
	"Front2",
	"Central1",
	"Central2",
	"Back1",
	"Back2",
	"Stop",
	"Nasal",
	"Fricative",
	"Affricative",
	"Glide",
	"Liquid",
	"Voiced",
	"Tensed",
	"High",
	"Medium",
	"Low",
	"Silent",
	"Elide",
	"Pause",
	"Full stop",
	"right",
	"left",
	"strong",
	"weak",
	"boundary",
];
const examples = {
	a: "father",
	b: "bet",
	c: "bought",
	d: "debt",
	e: "bake",
	f: "fin",
	g: "guess",
	h: "head",
	i: "Pete",
	k: "ken",
	l: "let",
	m: "met",
	n: "net",
	o: "boat",
	p: "pet",
	r: "red",
	s: "sit",
	t: "test",
	u: "lute",
	v: "vest",
	w: "wet",
	x: "about",
	y: "yet",
	z: "zoo",
	A: "bite",
	C: "chin",
	D: "this",
	E: "bet",
	G: "sing",
	I: "bit",
	J: "gin",
	K: "sexual",
	L: "bottle",
	M: "absym",
	N: "button",
	O: "boy",
	Q: "quest",
	R: "bird",
	S: "shin",
	T: "thin",
	U: "book",
	W: "bout",
	X: "excess",
	Y: "cute",
	Z: "leisure",
	"@": "bat",
	"!": "nazi",
	"#": "examine",
	"*": "one",
	"|": "logic",
	"^": "but",
	"+": "abattoir",
	"-": "(silent)",
	_: "(pause)",
	".": "(end)",
};

export async function open(app) {
	let state = await getJson("/api/talk"),
		answer = null,
		chosen = null,
		touring = false;
	const train = h("button", { type: "button", className: "main", onclick: () => begin() }, "Train a network");
	const stage = h("input", {
		type: "range",
		min: 0,
		max: 0,
		value: 0,
		"aria-label": "stage of learning",
		oninput: () => {
			touring = false;
			words();
		},
	});
	stage.style.width = "min(420px, 60vw)";
	const stageText = h("p", { role: "status" }),
		text = h("input", {
			value: "the machine learns to read aloud",
			size: 34,
			"aria-label": "words",
			maxLength: 150,
			oninput: () => words(),
		});
	const say = h(
			"button",
			{
				type: "button",
				onclick: () => {
					touring = false;
					sayIt();
				},
			},
			"Speak",
		),
		tour = h("button", { type: "button", onclick: () => setTour() }, "From babble to speech");
	const saveButton = h(
		"button",
		{ type: "button", onclick: () => save("nettalk.wav", wav(synthesize(codes()))) },
		"WAV",
	);
	const spelled = h("div", { className: "scroll" }),
		detail = h("div"),
		chart = new Chart({ title: "Letters right", xTitle: "updates", percent: true });
	const intro = h(
		"p",
		{ className: "soft" },
		"Seven letters go in, 26 articulatory features of the middle one's sound come out. ",
		"The words it learns from follow the rules of English; type any others.",
	);
	const element = h(
		"div",
		{},
		h(
			"div",
			{ className: "card" },
			h("h1", {}, "NETtalk"),
			intro,
			h("div", { className: "bar" }, train, h("label", {}, "stage ", stage), tour),
			stageText,
		),
		h(
			"div",
			{ className: "grid2" },
			h(
				"div",
				{},
				card(
					"Words",
					h(
						"form",
						{
							className: "bar",
							onsubmit: (e) => {
								e.preventDefault();
								sayIt();
							},
						},
						text,
						say,
						saveButton,
					),
					spelled,
				),
				chart.element,
			),
			card(
				"Articulatory features",
				h("p", { className: "small soft" }, "Choose a letter to see what its sound is made of."),
				detail,
			),
		),
	);

	const codes = () => answer.words.map((w) => w.map((l) => l.code));
	const learnt = () => state.stages.length > 0;

	function controls() {
		train.disabled = state.training || app.about.trains;
		train.textContent = state.training ? "Learning…" : learnt() ? "Train another" : "Train a network";
		stage.max = Math.max(0, state.stages.length - 1);
		stage.disabled = say.disabled = tour.disabled = saveButton.disabled = !learnt();
		const s = state.stages[Number(stage.value)],
			data = state.data?.split("/").at(-1);
		stageText.replaceChildren(
			s
				? h(
						"span",
						{},
						`After ${num(s.updates)} updates (${num(s.updates / state.epoch, 2)} passes through ${data}): `,
						h("b", { id: "talk-right" }, share(s.right)),
						" of its letters right, error ",
						num(s.error),
					)
				: app.about.trains
					? "This process trains a run. NETtalk is in the page of: microprop view"
					: "Not trained yet: this takes a few seconds.",
		);
		chart.series = learnt()
			? [
					{
						name: "right",
						colour: colour(0),
						x: state.stages.map((o) => o.updates),
						y: state.stages.map((o) => o.right),
					},
					{
						name: "this stage",
						colour: css("--bad"),
						points: true,
						x: s ? [s.updates] : [],
						y: s ? [s.right] : [],
					},
				]
			: [];
		chart.draw();
	}

	async function begin() {
		try {
			await post("/api/talk/train", {});
			stage.max = stage.value = 0;
			await poll();
		} catch (e) {
			note(e.message);
		}
	}
	async function poll() {
		// the slider follows what is learnt
		for (;;) {
			const follows = stage.value === stage.max; // unless it was moved
			state = await getJson("/api/talk");
			stage.max = Math.max(0, state.stages.length - 1);
			if (follows) stage.value = stage.max;
			await words();
			if (!state.training) return;
			await new Promise((r) => setTimeout(r, 250));
		}
	}

	let asked = 0;
	async function words() {
		controls();
		if (!learnt()) return;
		if (!/[a-z]/i.test(text.value)) {
			spelled.replaceChildren();
			return;
		}
		const mine = ++asked;
		try {
			const a = await getJson("/api/talk/words", { stage: stage.value, text: text.value });
			if (mine !== asked) return;
			answer = a;
			show();
		} catch (e) {
			if (mine === asked) note(e.message);
		}
	}

	function show() {
		spelled.replaceChildren(
			...answer.words.map((word, w) => {
				const known = word[0].target !== undefined,
					right = word.filter((l) => l.code === l.target).length;
				const row = (label, cell) =>
					h(
						"tr",
						{},
						h("th", { scope: "row", className: "soft small" }, label),
						word.map((l, i) => {
							const td = h("td", {}, cell(l, i));
							td.style.textAlign = "center";
							td.style.padding = ".15rem .3rem";
							return td;
						}),
					);
				const button = (l, i) => {
					const b = h(
						"button",
						{
							type: "button",
							className: "mono",
							title: examples[l.code[0]] ?? "",
							"aria-label": `${l.letter}: sound ${l.code[0]} as in ${examples[l.code[0]] ?? "?"}`,
							"aria-pressed": String(chosen && chosen[0] === w && chosen[1] === i),
							onclick: () => {
								chosen = [w, i];
								show();
							},
						},
						l.code[0] === "-" ? "·" : l.code[0],
					);
					const wrong = l.target !== undefined && l.code !== l.target;
					b.style.cssText = `padding:.1rem .45rem;min-width:2rem;${wrong ? "border-color:var(--bad)" : ""}`;
					return b;
				};
				return h(
					"table",
					{ style: "" },
					h(
						"tbody",
						{},
						row("letters", (l) => h("b", {}, l.letter)),
						row("sounds", button),
						row("stress", (l) => h("span", { className: "soft small mono" }, l.code[1])),
						known ? row("target", (l) => h("span", { className: "soft small mono" }, l.target)) : "",
					),
					known
						? h(
								"caption",
								{ className: "small soft" },
								`a word of the data: ${right} of ${word.length} letters right`,
							)
						: "",
				);
			}),
		);
		for (const t of spelled.children) {
			t.style.display = "inline-table";
			t.style.margin = "0 1.1rem .6rem 0";
		}
		const [w, i] = chosen && answer.words[chosen[0]]?.[chosen[1]] ? chosen : [0, 0],
			l = answer.words[w][i];
		detail.replaceChildren(
			h(
				"p",
				{},
				"Letter ",
				h("b", {}, l.letter),
				" of ",
				h("b", {}, answer.words[w].map((o) => o.letter).join("")),
				": sound ",
				h("b", { className: "mono" }, l.code[0]),
				` as in ${examples[l.code[0]] ?? "?"}, stress `,
				h("b", { className: "mono" }, l.code[1]),
			),
			h(
				"table",
				{},
				h(
					"tbody",
					{},
					l.outputs.map((v, k) => {
						const bar = h("div"),
							cell = h("td", {}, bar);
						const tint = k < 21 ? "--c0" : "--c4";
						bar.style.cssText = `height:.7em;border-radius:3px;background:var(${tint});margin-top:.3em`;
						bar.style.width = `${Math.max(1, 160 * v)}px`;
						cell.style.width = "170px";
						return h(
							"tr",
							{},
							h("th", { scope: "row" }, features[k]),
							cell,
							h("td", { className: "n" }, v.toFixed(2)),
						);
					}),
				),
			),
		);
	}

	function sayIt() {
		if (!answer) return 0;
		try {
			return speak(codes());
		} catch (e) {
			note(e.message);
			return 0;
		}
	}
	async function setTour() {
		// every stage, one after the other
		touring = !touring;
		tour.setAttribute("aria-pressed", String(touring));
		for (let k = 0; touring && k < state.stages.length; k++) {
			stage.value = k;
			await words();
			const seconds = sayIt();
			await new Promise((r) => setTimeout(r, 1000 * seconds + 350));
		}
		touring = false;
		tour.setAttribute("aria-pressed", "false");
	}

	controls();
	if (learnt()) {
		stage.value = stage.max;
		await words();
	} else if (!app.about.trains) begin();
	return {
		element,
		show: () => {
			controls();
		},
		restyle: () => {
			controls();
			if (answer) show();
		},
		hide: () => {
			touring = false;
			stopSpeaking();
		},
	};
}
