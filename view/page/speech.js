// SPDX-License-Identifier: MIT
// A small formant synthesizer: sounds of NETtalk's alphabet in, samples out. A pulse train (the voice) passes three
// resonators one after the other; noise (breath, friction) passes one. Targets of segments are joined by short glides.

export const RATE = 22050;

// F1 F2 F3 in Hz, then: v voice, a breath through the formants, n noise [level, frequency, bandwidth], d milliseconds.
const vowel = (f1, f2, f3, d = 110) => [{ f: [f1, f2, f3], v: 1, d }];
const glide = (...targets) => targets.map(([f1, f2, f3, d]) => ({ f: [f1, f2, f3], v: 1, d }));
const sonorant = (f1, f2, f3, v, d = 70) => [{ f: [f1, f2, f3], v, d }];
const hiss = (level, freq, width, v = 0, d = 100) => [{ f: [300, 1500, 2500], v, n: [level, freq, width], d }];
const stop = (freq, voiced) => [
	{ f: [250, freq > 3000 ? 1700 : freq, 2500], v: voiced ? 0.12 : 0, d: 50 },
	{ f: [350, freq > 3000 ? 1800 : freq, 2600], v: voiced ? 0.5 : 0, n: [voiced ? 0.25 : 0.55, freq, 900], d: 18 },
	...(voiced ? [] : [{ f: [450, 1500, 2500], v: 0, a: 0.3, d: 30 }]),
];
const basic = {
	a: vowel(730, 1090, 2440, 130),
	c: vowel(570, 840, 2410, 130),
	E: vowel(530, 1840, 2480),
	I: vowel(390, 1990, 2550, 90),
	"|": vowel(390, 1990, 2550, 80),
	i: vowel(280, 2250, 2900, 120),
	U: vowel(440, 1020, 2240, 90),
	u: vowel(310, 870, 2250, 120),
	"@": vowel(660, 1720, 2410, 130),
	"^": vowel(640, 1190, 2390, 100),
	x: vowel(500, 1450, 2450, 70),
	R: vowel(480, 1320, 1680, 120),
	e: glide([480, 1950, 2550, 70], [330, 2200, 2850, 60]),
	o: glide([520, 920, 2400, 70], [360, 800, 2300, 60]),
	A: glide([720, 1150, 2450, 80], [350, 2050, 2700, 70]),
	O: glide([550, 850, 2400, 80], [350, 2000, 2650, 70]),
	W: glide([720, 1200, 2450, 80], [370, 880, 2300, 70]),
	l: sonorant(360, 1050, 2700, 0.7),
	r: sonorant(320, 1060, 1400, 0.7),
	w: sonorant(290, 620, 2150, 0.7),
	y: sonorant(270, 2150, 2950, 0.7),
	m: sonorant(270, 950, 2200, 0.4),
	n: sonorant(270, 1550, 2450, 0.4),
	G: sonorant(270, 2050, 2600, 0.4, 80),
	f: hiss(0.14, 5500, 3500),
	T: hiss(0.12, 6000, 3000),
	s: hiss(0.4, 6300, 1800),
	S: hiss(0.45, 2900, 1100),
	v: hiss(0.08, 5000, 3500, 0.45, 70),
	D: hiss(0.07, 5500, 3000, 0.45, 60),
	z: hiss(0.22, 6000, 1800, 0.4, 80),
	Z: hiss(0.25, 2800, 1100, 0.4, 80),
	h: [{ f: [500, 1500, 2500], v: 0, a: 0.5, d: 60 }],
	p: stop(900, false),
	t: stop(4200, false),
	k: stop(1900, false),
	b: stop(800, true),
	d: stop(3600, true),
	g: stop(1800, true),
	"-": [],
	_: [{ f: [500, 1500, 2500], v: 0, d: 120 }],
	".": [{ f: [500, 1500, 2500], v: 0, d: 250 }],
};
const joined = {
	C: "tS",
	J: "dZ",
	K: "kS",
	L: "xl",
	M: "xm",
	N: "xn",
	Q: "kw",
	X: "ks",
	Y: "yu",
	"!": "ts",
	"#": "gz",
	"*": "w^",
	"+": "wa",
};
const segments = (sound) => (joined[sound] ? [...joined[sound]].flatMap((s) => basic[s]) : (basic[sound] ?? []));
export const knows = (sound) => sound in basic || sound in joined;

class Resonator {
	constructor() {
		this.y1 = this.y2 = 0;
	}
	tune(freq, width) {
		const r = Math.exp((-Math.PI * width) / RATE);
		this.c = -r * r;
		this.b = 2 * r * Math.cos((2 * Math.PI * freq) / RATE);
		this.a = 1 - this.b - this.c;
	}
	run(x) {
		const y = this.a * x + this.b * this.y1 + this.c * this.y2;
		this.y2 = this.y1;
		this.y1 = y;
		return y;
	}
}

// codes: [["r>", "I1", ...], ...] words of sound and stress -> Float32Array.
export function synthesize(words) {
	const plan = [];
	words.forEach((word, w) => {
		if (w) plan.push({ f: [500, 1500, 2500], v: 0, d: 110, p: 110 });
		for (const code of word) {
			const strong = code[1] === "1" ? 1 : code[1] === "2" ? 0.5 : 0;
			for (const s of segments(code[0]))
				plan.push({ ...s, d: s.v === 1 ? s.d * (1 + 0.25 * strong) : s.d, p: 108 + 26 * strong });
		}
	});
	plan.push({ f: [500, 1500, 2500], v: 0, d: 120, p: 85 });
	const total = plan.reduce((t, s) => t + s.d, 0),
		out = new Float32Array(Math.ceil((total * RATE) / 1000));
	const voice = [0, 1, 2].map(() => new Resonator()),
		fourth = new Resonator(),
		friction = new Resonator();
	const now = { f: [...plan[0].f], v: 0, a: 0, n: 0, freq: 4000, width: 1500, p: plan[0].p };
	let at = 0,
		phase = 0,
		seed = 1,
		before = 0,
		last = 0,
		older = 0,
		dull = 0;
	const noise = () => {
		seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
		return seed / 2147483648 - 1;
	};
	fourth.tune(3400, 250);
	for (const s of plan) {
		const n = Math.round((s.d * RATE) / 1000),
			sharp = s.n && !s.v;
		for (let i = 0; i < n && at < out.length; i++, at++) {
			if (at % 32 === 0) {
				const ease = (v, to, ms) => v + (to - v) * (1 - Math.exp((-32 * 1000) / RATE / ms));
				for (let k = 0; k < 3; k++) now.f[k] = ease(now.f[k], s.f[k], 14);
				now.v = ease(now.v, s.v, 8);
				now.a = ease(now.a, s.a ?? 0, 8);
				now.n = ease(now.n, s.n ? s.n[0] : 0, sharp ? 3 : 7);
				if (s.n) {
					now.freq = s.n[1];
					now.width = s.n[2];
				}
				now.p = ease(now.p, s.p * (1 - (0.15 * at) / out.length), 50);
				voice.forEach((r, k) => r.tune(now.f[k], [70, 100, 150][k]));
				friction.tune(Math.min(now.freq, RATE * 0.45), now.width);
			}
			phase += now.p / RATE;
			if (phase >= 1) phase -= 1;
			// the flow through the glottis (Rosenberg): it opens slowly and closes fast; lips radiate its derivative
			const open =
				phase < 0.4
					? 0.5 - 0.5 * Math.cos((Math.PI * phase) / 0.4)
					: phase < 0.56
						? Math.cos(((Math.PI / 2) * (phase - 0.4)) / 0.16)
						: 0;
			const pulse = open - before;
			before = open;
			let x = 6 * now.v * pulse + 0.12 * now.a * noise();
			for (const r of voice) x = r.run(x);
			x = fourth.run(x);
			const bright = 2.5 * (x - 0.85 * dull);
			dull = x;
			const fresh = noise(),
				rough = fresh - 2 * last + older; // no low frequencies
			older = last;
			last = fresh;
			out[at] = bright + 0.08 * now.n * friction.run(rough);
		}
	}
	const peak = out.reduce((m, v) => Math.max(m, Math.abs(v)), 1e-6);
	return out.map((v) => (0.8 * v) / peak);
}

let context = null,
	playing = null;
export function stopSpeaking() {
	try {
		playing?.stop();
	} catch {
		/* it has ended */
	}
	playing = null;
}
export function speak(words) {
	const samples = synthesize(words);
	context ??= new AudioContext();
	context.resume();
	stopSpeaking();
	const buffer = context.createBuffer(1, samples.length, RATE);
	buffer.copyToChannel(samples, 0);
	const source = context.createBufferSource();
	source.buffer = buffer;
	source.connect(context.destination);
	source.start();
	playing = source;
	return samples.length / RATE;
}

// A mono WAV file of 16 bits.
export function wav(samples) {
	const view = new DataView(new ArrayBuffer(44 + 2 * samples.length)),
		text = (at, s) => [...s].forEach((c, i) => view.setUint8(at + i, c.charCodeAt(0)));
	text(0, "RIFF");
	view.setUint32(4, 36 + 2 * samples.length, true);
	text(8, "WAVEfmt ");
	view.setUint32(16, 16, true);
	view.setUint16(20, 1, true);
	view.setUint16(22, 1, true);
	view.setUint32(24, RATE, true);
	view.setUint32(28, 2 * RATE, true);
	view.setUint16(32, 2, true);
	view.setUint16(34, 16, true);
	text(36, "data");
	view.setUint32(40, 2 * samples.length, true);
	samples.forEach((v, i) => view.setInt16(44 + 2 * i, Math.round(32767 * v), true));
	return new Blob([view], { type: "audio/wav" });
}
