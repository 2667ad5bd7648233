// What every figure needs: the data, safe markup, numbers for people, scales and axes.

const report = JSON.parse(document.getElementById("report").textContent);
const at = (id) => document.getElementById(id);

/** Markup made by `html`; anything else that enters a template is text and gets escaped. */
class Markup {
  constructor(text) { this.text = text; }
}

const entities = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

function asMarkup(value) {
  if (value instanceof Markup) return value.text;
  if (Array.isArray(value)) return value.map(asMarkup).join("");
  if (value === null || value === undefined || value === false) return "";
  return String(value).replace(/[&<>"']/g, (c) => entities[c]);
}

/** A template whose values cannot become markup unless they were made here. */
function html(strings, ...values) {
  return new Markup(strings.reduce((text, part, i) => text + asMarkup(values[i - 1]) + part));
}

/** What sentences put between backticks, names and code, is set as such. */
function marked(text) {
  return String(text).split("`").map((part, i, parts) => {
    // The last of an odd number of backticks opens nothing.
    if (i % 2 && i === parts.length - 1) return `\`${part}`;
    return i % 2 ? html`<code>${part}</code>` : part;
  });
}

function put(id, markup) { at(id).innerHTML = markup.text; }

/** A box that is larger inside than outside says so, and can be reached by keyboard. */
function allowScrolling(id) {
  const box = at(id);
  const hidden = box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1;
  if (hidden) box.tabIndex = 0;
  else box.removeAttribute("tabindex");
  if (hidden) at(`${id}-note`).append(" Scroll the drawing to see all of it.");
}

const known = (x) => typeof x === "number" && Number.isFinite(x);

/** A number with a true minus sign; a dash for none. */
function fixed(x, digits) {
  if (!known(x)) return "–";
  const text = x.toFixed(digits);
  return /^-[0.]*$/.test(text) ? text.slice(1) : text.replace("-", "−");
}

const nats = (x) => fixed(x, Math.abs(x) < 100 ? 2 : 0);

/** Three or four digits, for values of any size. */
function brief(x) {
  if (!known(x)) return "–";
  const size = Math.abs(x);
  if (size !== 0 && (size >= 1e6 || size < 1e-3)) return x.toExponential(2).replace(/-/g, "−").replace("e+", "e");
  if (Number.isInteger(x)) return fixed(x, 0);
  return fixed(x, Math.min(3, Math.max(0, 2 - Math.floor(Math.log10(size)))));
}

const count = (n) => n.toLocaleString("en");
const many = (n, one, more) => `${count(n)} ${n === 1 ? one : more || one + "s"}`;

function percent(fraction) {
  if (!known(fraction)) return "–";
  const size = 100 * fraction;
  if (size > 0 && size < 0.1) return "<0.1 %";
  return `${size.toFixed(size < 10 && size > 0 ? 1 : 0)} %`;
}

function extent(values) {
  let low = Infinity;
  let high = -Infinity;
  for (const x of values) {
    if (!known(x)) continue;
    if (x < low) low = x;
    if (x > high) high = x;
  }
  if (low > high) return [0, 1];
  return low === high ? [low - 0.5, high + 0.5] : [low, high];
}

/** The value below which a fraction of the known values lies. */
function quantile(values, fraction) {
  const sorted = values.filter(known).sort((a, b) => a - b);
  return sorted.length ? sorted[Math.round(fraction * (sorted.length - 1))] : NaN;
}

/** Round values between two ends, about `wanted` of them, with their texts. */
function ticks([low, high], wanted) {
  const rough = (high - low) / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= rough * 0.999) || rough;
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const found = [];
  for (let k = Math.ceil(low / step - 1e-6); k * step <= high + step * 1e-6 && found.length < 50; k += 1) {
    const value = k * step;
    const plain = Math.max(Math.abs(low), Math.abs(high)) < 1e6 && digits < 5;
    found.push({ value, text: plain ? (digits ? fixed(value, digits) : count(Math.round(value) || 0).replace("-", "−")) : brief(value) });
  }
  return found;
}

const angleTicks = [[-Math.PI, "−π"], [-Math.PI / 2, "−π/2"], [0, "0"], [Math.PI / 2, "π/2"], [Math.PI, "π"]]
  .map(([value, text]) => ({ value, text }));

/** An angle between −π and π. */
const wrap = (angle) => (known(angle) ? angle - 2 * Math.PI * Math.round(angle / (2 * Math.PI)) : angle);

const ruler = document.createElement("canvas").getContext("2d");
ruler.font = `12px ${getComputedStyle(document.body).fontFamily}`;

/** How wide a text of a figure is, in pixels. */
const widthOf = (text) => ruler.measureText(text).width;

/** A text cut to a width, in the middle: names of many columns often differ only at their ends. */
function clip(text, room) {
  if (widthOf(text) <= room) return text;
  const letters = [...text];
  const cut = (n) => `${letters.slice(0, Math.ceil(n * 0.6)).join("")}…${letters.slice(letters.length - Math.floor(n * 0.4)).join("")}`;
  let [fits, tooLong] = [1, Math.min(letters.length, 400)];
  while (tooLong - fits > 1) {
    const half = (fits + tooLong) >> 1;
    if (widthOf(cut(half)) <= room) fits = half;
    else tooLong = half;
  }
  return cut(fits);
}

const scale = ([low, high], from, to) => (x) => from + ((x - low) / (high - low)) * (to - from);

/**
 * The room of a plot: scales for both axes and the axes themselves. `x` and `y` have `extent`, `label` and may have their own
 * `ticks`. Lines are as long as the data reach, ticks point outward, nothing else.
 */
function frame(width, height, x, y) {
  const yTicks = y.ticks || ticks(y.extent, Math.max(3, height / 50));
  const left = 14 + Math.max(...yTicks.map((t) => widthOf(t.text)), 12);
  const room = { left, right: width - 12, top: 26, bottom: height - 38 };
  const sx = scale(x.extent, room.left, room.right);
  const sy = scale(y.extent, room.bottom, room.top);
  const xTicks = x.ticks || ticks(x.extent, Math.max(2, width / 110));
  const axes = html`
    <path class="axis" d="M${sx(x.extent[0])} ${room.bottom + 4}H${sx(x.extent[1])}M${room.left - 4} ${sy(y.extent[0])}V${sy(y.extent[1])}"/>
    ${xTicks.map((t) => html`<path class="axis" d="M${sx(t.value)} ${room.bottom + 4}v4"/><text class="soft middle" x="${sx(t.value)}" y="${room.bottom + 20}">${t.text}</text>`)}
    ${yTicks.map((t) => html`<path class="axis" d="M${room.left - 4} ${sy(t.value)}h-4"/><text class="soft end" x="${room.left - 11}" y="${sy(t.value) + 4}">${t.text}</text>`)}
    <text class="end" x="${room.right}" y="${height - 3}">${x.label}</text>
    <text x="0" y="12">${y.label}</text>`;
  return { room, sx, sy, axes };
}

const svg = (width, height, label, inside) => html`<svg width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-label="${label}">${inside}</svg>`;

/** A line through the known points; a gap where a value is unknown is bridged. */
const path = (points) => points.filter((p) => p.every(known)).map((p, i) => `${i ? "L" : "M"}${p[0].toFixed(1)} ${p[1].toFixed(1)}`).join("");

const name = (variable) => (report.variables[variable] || { name: "?" }).name;
const energy = (latent) => (known(latent.free_energy.held_out) ? latent.free_energy.held_out : latent.free_energy.train);
const heldOut = report.latents.some((latent) => known(latent.free_energy.held_out));
const coordinates = report.latents.flatMap((latent) => latent.coordinates);
