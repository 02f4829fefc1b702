// SPDX-License-Identifier: MIT
// Small helpers: elements, requests, numbers, colours. Names from files become text nodes, never markup.

export function h(tag, props, ...children) {
	const e = document.createElement(tag);
	for (const [key, value] of Object.entries(props ?? {})) {
		if (value === undefined || value === null || value === false) continue;
		if (key.startsWith("on")) e.addEventListener(key.slice(2), value);
		else if (key in e && !key.startsWith("aria") && key !== "list" && key !== "width" && key !== "height")
			e[key] = value;
		else e.setAttribute(key, value === true ? "" : value);
	}
	e.append(...children.flat().filter((c) => c !== null && c !== undefined && c !== false));
	return e;
}

// A part of a view, under its heading.
export const card = (title, ...rest) =>
	h("section", { className: "card", "aria-label": title }, h("h2", {}, title), ...rest);

export function swatch(colour) {
	const e = h("span", { className: "swatch" });
	e.style.background = colour;
	return e;
}

export const choice = (label, values, value, onchange) =>
	h(
		"select",
		{ "aria-label": label, onchange },
		values.map((v) => h("option", { value: v, selected: v === value }, v)),
	);

export function note(text) {
	const e = document.getElementById("note");
	e.textContent = text;
	e.hidden = false;
	clearTimeout(note.timer);
	note.timer = setTimeout(() => {
		e.hidden = true;
	}, 6000);
}

async function answer(r) {
	if (r.ok) return r;
	let text = `${r.status} ${r.statusText}`;
	try {
		const body = await r.text();
		text = body.startsWith("{") ? JSON.parse(body).error : body.trim();
	} catch {
		/* the status says it */
	}
	const e = new Error(text);
	e.status = r.status;
	throw e;
}

export async function get(path, query) {
	const q = query ? "?" + new URLSearchParams(query) : "";
	return answer(await fetch(path + q, { headers: { Accept: "application/json" } }));
}
export const getJson = async (path, query) => (await get(path, query)).json();
export const getText = async (path, query) => (await get(path, query)).text();
export const getFloats = async (path, query) => new Float32Array(await (await get(path, query)).arrayBuffer());
export const post = async (path, body) =>
	(
		await answer(
			await fetch(path, {
				method: "POST",
				headers: { "Content-Type": "application/json" },
				body: JSON.stringify(body),
			}),
		)
	).json();

// Four digits that count.
export function num(v, digits = 4) {
	if (v === null || v === undefined || Number.isNaN(v)) return "–";
	if (!Number.isFinite(v)) return String(v);
	if (Number.isInteger(v) && Math.abs(v) < 1e9) return v.toLocaleString("en-US");
	const a = Math.abs(v);
	if (a >= 1e6 || a < 1e-4) return v.toExponential(digits - 2);
	if (a >= 1000) return v.toLocaleString("en-US", { maximumFractionDigits: 0 });
	return String(Number(v.toPrecision(digits)));
}
export const share = (v) => (v === null || v === undefined || Number.isNaN(v) ? "–" : (100 * v).toFixed(1) + " %");

export const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
export const colour = (i) => css(`--c${i % 8}`);

export function save(name, blob) {
	const url = URL.createObjectURL(blob);
	const a = h("a", { href: url, download: name });
	a.click();
	setTimeout(() => URL.revokeObjectURL(url), 10000);
}

// A canvas as large as its element, in device pixels; returns its context in CSS pixels.
export function fit(canvas, height) {
	const width = canvas.parentElement.clientWidth || 300,
		ratio = devicePixelRatio || 1;
	if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
		canvas.width = Math.round(width * ratio);
		canvas.height = Math.round(height * ratio);
	}
	canvas.style.height = height + "px";
	const ctx = canvas.getContext("2d");
	ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
	return [ctx, width];
}

export const later = (fn) => {
	// at most once a frame
	let due = false;
	return () => {
		if (due) return;
		due = true;
		requestAnimationFrame(() => {
			due = false;
			fn();
		});
	};
};
