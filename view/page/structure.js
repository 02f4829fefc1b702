// SPDX-License-Identifier: MIT
// Groups and blocks of a network, drawn as boxes and arrows.
import { css, num } from "./dom.js";

const svg = (tag, attributes, ...children) => {
	const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
	for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
	e.append(...children);
	return e;
};

// Levels of groups: inputs first, each group after those that lead to it.
export function levels(net) {
	const level = new Map(net.groups.map((g) => [g.name, 0]));
	const arrows = net.blocks
		.map((b) => ({ ...b, source: b.from.replace(/\[.*$/, "") }))
		.filter((b) => b.source !== "true" && level.has(b.source));
	for (let round = 0; round < net.groups.length; round++)
		for (const b of arrows) {
			const to = b.to.replace(/\[.*$/, "");
			if (
				to !== b.source &&
				level.get(to) <= level.get(b.source) &&
				level.get(b.source) + 1 < net.groups.length
			)
				level.set(to, level.get(b.source) + 1);
		}
	return [level, arrows];
}

// all: blocks that can be chosen, block: the one that is; onchoose(index).
export function structureSvg(net, all, block, onchoose) {
	const [level, arrows] = levels(net);
	const columns = [];
	for (const g of net.groups) (columns[level.get(g.name)] ??= []).push(g);
	const shown = columns.filter(Boolean),
		W = 150,
		H = 62,
		GX = 96,
		GY = 26;
	const tall = Math.max(...shown.map((c) => c.length)),
		width = shown.length * (W + GX) - GX + 20,
		height = tall * (H + GY) + 24;
	const place = new Map();
	shown.forEach((c, i) =>
		c.forEach((g, k) =>
			place.set(g.name, [10 + i * (W + GX), 14 + ((tall - c.length) * (H + GY)) / 2 + k * (H + GY)]),
		),
	);
	const root = svg("svg", {
		width,
		viewBox: `0 0 ${width} ${height}`,
		role: "group",
		"aria-label": "groups and blocks",
	});
	root.style.maxWidth = "100%";

	for (const b of arrows) {
		const to = b.to.replace(/\[.*$/, ""),
			[x0, y0] = place.get(b.source),
			[x1, y1] = place.get(to);
		const index = all.findIndex((o) => o.source === b.source && o.to === to),
			on = block && block.source === b.source && block.to === to;
		const forward = x1 > x0,
			sx = forward ? x0 + W : x0 + W / 2,
			sy = forward ? y0 + H / 2 : y0 + H,
			ex = forward ? x1 - 7 : x1 + W / 2,
			ey = forward ? y1 + H / 2 : y1 + H + 7;
		const d = forward
			? `M${sx} ${sy}C${sx + 50} ${sy} ${ex - 50} ${ey} ${ex} ${ey}`
			: `M${sx + 20} ${sy}C${sx + 40} ${sy + 34} ${ex - 40} ${ey + 30} ${ex - 12} ${ey}`;
		const choose = () => onchoose(index);
		const g = svg("g", {
			tabindex: 0,
			role: "button",
			"aria-label": `weights ${b.source} to ${to}, ${b.connections} links`,
		});
		g.style.cursor = "pointer";
		g.addEventListener("click", choose);
		g.addEventListener("keydown", (e) => {
			if (e.key === "Enter" || e.key === " ") {
				choose();
				e.preventDefault();
			}
		});
		const wide = 1 + Math.min(6, Math.log10(b.connections + 1));
		g.append(
			svg("path", { d, fill: "none", stroke: "transparent", "stroke-width": 18 }),
			svg("path", {
				d,
				fill: "none",
				stroke: on ? css("--accent") : css("--soft"),
				"stroke-width": wide,
				"stroke-opacity": on ? 1 : 0.55,
			}),
			svg("path", {
				d: forward ? `M${ex} ${ey - 6}l9 6l-9 6z` : `M${ex - 18} ${ey}l6 -9l6 9z`,
				fill: on ? css("--accent") : css("--soft"),
			}),
			svg(
				"text",
				{
					x: (sx + ex) / 2,
					y: (sy + ey) / 2 - 9 + (forward ? 0 : 34),
					"text-anchor": "middle",
					"font-size": 12,
					fill: on ? css("--accent") : css("--soft"),
				},
				num(b.connections),
			),
		);
		root.append(g);
	}
	for (const g of net.groups) {
		const [x, y] = place.get(g.name),
			tint = { input: "--c0", output: "--c1" }[g.role] ?? "--c2";
		root.append(
			svg("rect", {
				x,
				y,
				width: W,
				height: H,
				rx: 9,
				fill: css("--card"),
				stroke: css(tint),
				"stroke-width": 2,
			}),
			svg(
				"text",
				{
					x: x + W / 2,
					y: y + 26,
					"text-anchor": "middle",
					"font-size": 15,
					"font-weight": 600,
					fill: css("--ink"),
				},
				g.name.length > 16 ? g.name.slice(0, 15) + "…" : g.name,
			),
			svg(
				"text",
				{ x: x + W / 2, y: y + 46, "text-anchor": "middle", "font-size": 12, fill: css("--soft") },
				`${num(g.units)} ${g.role === "input" ? "inputs" : g.function}`,
			),
		);
	}
	return root;
}
