// Steps of a case over one array of units, every sum in the order of microprop, rounded to float32.
const float32 = Math.fround;

function decoded(text) {
	const bytes = Uint8Array.from(atob(text), c => c.charCodeAt(0));
	return new Float32Array(bytes.buffer);
}

const bits = new Uint32Array(1), number = new Float32Array(bits.buffer);

function powerOfTwo(z) { // of the whole number that was rounded to z, in its low bits
	number[0] = z;
	bits[0] <<= 23;
	return number[0];
}

const fused = (a, b, c) => float32(a * b + c), add = (a, b) => float32(a + b), mul = (a, b) => float32(a * b);
const series = (c, x) => c.reduceRight((sum, v) => fused(sum, x, v));
const floats = (...v) => v.map(float32);
const ln2 = float32(0.6931471824645996), ln2Low = float32(-1.9046542121259336e-09);
const ln2Inverse = float32(1.4426950216293335), whole = 12583039;

// p / (1 + e)
function overOneAnd(p, e, exact) {
	const d = add(e, 1);
	let y = fused(fused(float32(32 / 99), e, float32(-80 / 99)), e, float32(98 / 99));
	y = fused(y, fused(-d, y, 1), y);
	const q = mul(p, y);
	return fused(q, exact ? fused(-e, y, add(1, -y)) : fused(-d, y, 1), q);
}

const sigmoidSeries = floats(1, -0.9999997, 0.49999148, -0.16667639, 0.041898273, -0.008290251);
function sigmoid(x) {
	const a = Math.min(88, Math.abs(x)), z = fused(a, -ln2Inverse, whole), r = fused(add(z, -whole), ln2, a);
	const e = mul(series(sigmoidSeries, r), powerOfTwo(z));
	return overOneAnd(x < 0 ? e : 1, e, false);
}

const sigmoid2Series = floats(1, -0.693147, 0.24022241, -0.055507347, 0.009671592, -0.0013264625);
function sigmoid2(x) {
	const a = Math.min(127, Math.abs(x)), z = add(whole, -a), r = add(add(z, -whole), a);
	const e = mul(series(sigmoid2Series, r), powerOfTwo(z));
	return overOneAnd(x < 0 ? e : 1, e, false);
}

const tanhSeries = floats(2, -1.9999999, 1.3333205, -0.6666742, 0.2678119, -0.08888879);
function tanh(x) {
	const a = Math.min(20, Math.abs(x)), z = fused(a, -2 * ln2Inverse, whole), r = fused(add(z, -whole), ln2 / 2, a);
	const power = powerOfTwo(z), m = fused(power, mul(r, series(tanhSeries, r)), add(1, -power));
	return Math.sign(x) * overOneAnd(m, add(1, -m), true);
}

const gaussianSeries = floats(1, -1, 0.49999994, -0.1666643, 0.041668005, -0.008374216, 0.0013843583);
function gaussian(x) {
	const a = Math.min(float32(9.39), Math.abs(x)), square = mul(a, a), lost = fused(a, a, -square);
	const z = fused(square, -ln2Inverse, whole), n = add(z, -whole);
	const r = add(lost, fused(n, ln2Low, fused(n, ln2, square)));
	return mul(series(gaussianSeries, r), powerOfTwo(z));
}

const expSeries = floats(2, 2, 0.9999999, 0.3333286, 0.08333601, 0.016748432, 0.0027687165);
function exp(x) {
	const a = Math.min(89, Math.max(float32(-87.3), x)), z = fused(a, ln2Inverse, whole - 1), n = add(z, 1 - whole);
	return mul(series(expSeries, fused(-n, ln2Low, fused(-n, ln2, a))), powerOfTwo(z));
}

function softmax(u, first, count) {
	const lane = new Float32Array(16);
	const largest = u.subarray(first, first + count).reduce((a, b) => b > a ? b : a, -Infinity);
	for (let j = 0; j < count; j++)
		lane[j % 16] += u[first + j] = exp(add(u[first + j], -largest));
	for (let n = 8; n; n >>= 1)
		for (let j = 0; j < n; j++)
			lane[j] += lane[j + n];
	const share = float32(1 / lane[0]);
	for (let j = first; j < first + count; j++)
		u[j] *= share;
}

// Lines between points: s is x[6], y[6], slope[5], low, high.
function lines(s, x) {
	if (!(x >= s[0]))
		return x < s[0] ? s[17] : x;
	let i = 0;
	while (i < 5 && x >= s[i + 1])
		i++;
	return i == 5 ? s[18] : fused(s[12 + i], add(x, -s[i]), s[6 + i]);
}

const softsign = x => float32(x / add(1, Math.abs(x)));
const functions = {
	sigmoid, sigmoid2, tanh, gaussian, softsign,
	relu: x => x <= 0 ? 0 : x,
	elliott: x => fused(0.5, softsign(x), 0.5),
	stepwise: x => lines(model.stepwise, x),
	stepwise_tanh: x => lines(model.stepwise_tanh, x),
};

const work = {
	start(n, first, count, at) {
		n.u.set(model.weight.subarray(at, at + count), first);
	},
	dense(n, first, count, at, from, sources, stride) {
		const u = n.u, w = model.weight;
		for (let i = 0; i < sources; i++) {
			const x = u[from + i];
			if (x != 0)
				for (let j = 0, k = at + i * stride; j < count; j++)
					u[first + j] = x * w[k + j] + u[first + j];
		}
	},
	links(n, first, count, at) {
		for (let j = 0; j < count; j++)
			for (let k = model.row[at + j]; k < model.row[at + j + 1]; k++)
				n.u[first + j] = n.u[model.from[k]] * model.link[k] + n.u[first + j];
	},
	units(n, first, count, name) {
		if (name == "softmax")
			return softmax(n.u, first, count);
		for (let j = first; j < first + count; j++)
			n.u[j] = functions[name](n.u[j]);
	},
	integrate(n, first, count, at, dt) {
		for (let j = 0; j < count; j++)
			n.u[first + j] = n.last[at + j] += float32(dt * float32(n.u[first + j] - n.last[at + j]));
	},
};

// Input units of a case.
function encode(row) {
	return model.feed ? Float32Array.from(model.feed, f => {
		const v = f.wide ? row[f.column] : float32(row[f.column]);
		if (f.category !== undefined)
			return v == f.category;
		if (f.missing)
			return Number.isNaN(v);
		return Number.isNaN(v) ? f.fill : (v - f.offset) * f.factor;
	}) : row;
}

export class Network {
	constructor() {
		this.u = new Float32Array(model.units);
		this.last = new Float32Array(model.states);
		this.reset();
	}

	// A sequence begins.
	reset() {
		for (const m of model.remember)
			this.last.fill(m.start, m.at, m.at + m.count);
	}

	// Outputs of a case, the next of its sequence.
	step(row) {
		const x = encode(row), u = this.u;
		for (let t = 0; t < model.ticks; t++) {
			for (const g of model.inputs)
				for (let i = 0; i < g.count; i++)
					u[g.first + i] = t < model.inputsEnd ? x[g.at + i] : 0;
			for (const m of model.remember)
				if (m.from != m.to)
					u.set(this.last.subarray(m.at, m.at + m.count), m.to);
			for (const [kind, ...rest] of model.work)
				work[kind](this, ...rest);
			for (const m of model.remember)
				if (m.from != m.to)
					this.last.set(u.subarray(m.from, m.from + m.count), m.at);
		}
		const y = [];
		for (const g of model.outputs)
			for (let i = 0; i < g.count; i++)
				y.push(u[g.first + i]);
		return model.decode ? y.map((v, i) => v / model.decode[i].factor + model.decode[i].offset) : y;
	}
}

// Outputs of a case by itself.
export function predict(row) {
	return new Network().step(row);
}

// The class with the largest output; of outputs that are not classes, 0 or 1 for each.
export function guess(y) {
	return about.classes ? about.classes[y.indexOf(Math.max(...y))] : y.map(v => v >= 0.5 ? 1 : 0);
}
