// SPDX-License-Identifier: MIT
// What charts use of a canvas context, written as SVG.

const escape = (s) =>
	String(s).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
const short = (v) => String(Math.round(v * 100) / 100);
const place = (x, y) => `x="${short(x)}" y="${short(y)}"`;
const size = (w, h) => `width="${short(w)}" height="${short(h)}"`;

export class SvgContext {
	constructor(width, height) {
		Object.assign(this, { width, height, out: [], path: "", dash: [], clips: 0, open: 0, stack: [] });
		Object.assign(this, {
			fillStyle: "#000",
			strokeStyle: "#000",
			lineWidth: 1,
			globalAlpha: 1,
			textAlign: "left",
			font: "12px sans-serif",
		});
	}
	save() {
		this.stack.push(this.open);
	}
	restore() {
		const n = this.stack.pop();
		while (this.open > n) {
			this.out.push("</g>");
			this.open--;
		}
	}
	beginPath() {
		this.path = "";
		this.box = null;
	}
	moveTo(x, y) {
		this.path += `M${short(x)} ${short(y)}`;
	}
	lineTo(x, y) {
		this.path += `L${short(x)} ${short(y)}`;
	}
	rect(x, y, w, h) {
		this.box = [x, y, w, h];
	}
	arc(x, y, r) {
		this.path += `M${short(x - r)} ${short(y)}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`;
	}
	clip() {
		const [x, y, w, h] = this.box,
			id = `c${this.clips++}`;
		this.out.push(
			`<clipPath id="${id}"><rect ${place(x, y)} ${size(w, h)}/></clipPath><g clip-path="url(#${id})">`,
		);
		this.open++;
	}
	setLineDash(d) {
		this.dash = d;
	}
	stroke() {
		if (!this.path) return;
		const dash = this.dash.length ? ` stroke-dasharray="${this.dash.join(" ")}"` : "",
			alpha = this.globalAlpha < 1 ? ` opacity="${this.globalAlpha}"` : "";
		this.out.push(
			`<path d="${this.path}" fill="none" stroke="${escape(this.strokeStyle)}" ` +
				`stroke-width="${this.lineWidth}"${dash}${alpha}/>`,
		);
	}
	fill() {
		this.out.push(`<path d="${this.path}" fill="${escape(this.fillStyle)}"/>`);
	}
	fillRect(x, y, w, h) {
		this.out.push(`<rect ${place(x, y)} ${size(w, h)} fill="${escape(this.fillStyle)}"/>`);
	}
	fillText(text, x, y) {
		const anchor = { left: "start", center: "middle", right: "end" }[this.textAlign];
		this.out.push(
			`<text ${place(x, y)} fill="${escape(this.fillStyle)}" text-anchor="${anchor}">${escape(text)}</text>`,
		);
	}
	text() {
		const box = `${size(this.width, this.height)} viewBox="0 0 ${this.width} ${this.height}"`;
		const font = 'font-family="sans-serif" font-size="12"';
		return `<svg xmlns="http://www.w3.org/2000/svg" ${box} ${font}>\n${this.out.join("\n")}\n</svg>\n`;
	}
}
