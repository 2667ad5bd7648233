// Any two coordinates against each other, coloured by anything: a column, a latent, its uncertainty, the time.

// Okabe and Ito's colours, which the colour-blind tell apart; black is left out because it vanishes in the dark.
const swatches = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8ad1c", "#8c6bb1"];
// Viridis, less the end that fades into the page; and a wheel for angles whose lightness also goes round.
const viridis = ["#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30", "#fde725"];
const wheel = ["#4f3a6e", "#3d7fc1", "#8fc1a9", "#e8c766", "#d9783f", "#99375a", "#4f3a6e"];

function mix(colours, part) {
  const along = Math.min(1, Math.max(0, part)) * (colours.length - 1);
  const i = Math.min(colours.length - 2, Math.floor(along));
  const channel = (colour, k) => parseInt(colour.slice(1 + 2 * k, 3 + 2 * k), 16);
  const parts = [0, 1, 2].map((k) => Math.round(channel(colours[i], k) + (along - i) * (channel(colours[i + 1], k) - channel(colours[i], k))));
  return `rgb(${parts.join(",")})`;
}

const isDark = () => getComputedStyle(document.documentElement).colorScheme === "dark";
const shade = (part, circular) => (circular ? mix(wheel, part) : mix(viridis, isDark() ? 0.25 + 0.75 * part : 0.9 * part));

/** Everything that can be an axis or a colour: a group for the menu, a label, values, and what is known about them. */
const quantities = (() => {
  const found = [];
  for (const latent of report.latents) {
    for (const c of latent.coordinates) {
      found.push({ group: "Latents", label: c.label, values: c.circular ? c.mean.map(wrap) : c.mean, sd: c.sd, circular: c.circular, range: c.range, axis: true });
    }
    if (latent.family.startsWith("categorical") && latent.coordinates.length > 1) {
      const levels = latent.coordinates.map((c) => c.label);
      const codes = Array.from({ length: report.sampled_rows }, (_, n) => {
        const p = latent.coordinates.map((c) => c.mean[n]);
        return p.every(known) ? p.indexOf(Math.max(...p)) : null;
      });
      found.push({ group: "Latents", label: `${name(latent.variable)}, most likely level`, levels, values: codes });
    }
  }
  const sequence = report.sequence;
  if (sequence) found.push({ group: "Time", label: `step (${sequence.time})`, values: sequence.step, axis: true });
  for (const column of report.columns) {
    if (column.values.numbers) found.push({ group: "Columns", label: column.name, values: column.values.numbers, axis: true });
    else found.push({ group: "Columns", label: column.name, levels: column.values.levels.levels, values: column.values.levels.codes });
  }
  for (const c of coordinates) found.push({ group: "Uncertainty", label: `${c.label}, posterior sd`, values: c.sd });
  found.forEach((q, i) => { q.index = i; });
  return found;
})();

function menu(id, chosen, allowed) {
  const groups = [...new Set(quantities.map((q) => q.group))];
  const option = (q) => html`<option value="${q.index}"${q === chosen && new Markup(" selected")}>${q.label}</option>`;
  put(id, html`${id === "colour" && html`<option value="-1">nothing</option>`}${groups.map((group) => {
    const members = quantities.filter((q) => q.group === group && allowed(q));
    return members.length > 0 && html`<optgroup label="${group}">${members.map(option)}</optgroup>`;
  })}`);
}

/** How a quantity colours row `n`, and the legend that says so. */
function colouring(quantity) {
  if (!quantity) return { of: () => "var(--latent)", legend: html`` };
  const values = quantity.values;
  const missing = values.filter((x) => !known(x)).length;
  const gap = missing > 0 && html`<span>${dot(null)} missing (${count(missing)})</span>`;
  if (quantity.levels) {
    const counts = quantity.levels.map(() => 0);
    values.forEach((code) => { if (known(code)) counts[code] += 1; });
    const rank = quantity.levels.map((_, i) => i).sort((a, b) => counts[b] - counts[a]);
    // Beyond eight levels nobody can tell colours apart: the frequent ones keep theirs.
    const own = (quantity.levels.length <= swatches.length ? quantity.levels.map((_, i) => i) : rank.slice(0, swatches.length)).filter((i) => counts[i] > 0);
    const colours = new Map(own.map((level, i) => [level, swatches[i]]));
    const rest = values.filter((code) => known(code) && !colours.has(code)).length;
    return {
      of: (n) => (known(values[n]) ? colours.get(values[n]) || "var(--line)" : null),
      legend: html`${own.map((level) => html`<span>${dot(colours.get(level))} ${clip(quantity.levels[level], 240)}</span>`)}${rest > 0 && html`<span>${dot("var(--line)")} other (${count(rest)})</span>`}${gap}`,
    };
  }
  const { part, least, most, how } = quantity.circular ? { part: scale([-Math.PI, Math.PI], 0, 1), least: "−π", most: "π" } : evenly(values);
  const strip = Array.from({ length: 48 }, (_, i) => html`<rect x="${i * 3}" y="0" width="3.2" height="10" fill="${shade(i / 47, quantity.circular)}"/>`);
  return {
    of: (n) => (known(values[n]) ? shade(part(values[n]), quantity.circular) : null),
    legend: html`<span>${clip(quantity.label, 240)}</span><span>${least} <svg width="144" height="10" aria-hidden="true">${strip}</svg> ${most}</span>${how && html`<span>${how}</span>`}${gap}`,
  };
}

/** Where a value lies between the least and the most; skewed values by rank, lest a few far ones wash out all others. */
function evenly(values) {
  const span = extent(values);
  const straight = scale(span, 0, 1);
  const middle = quantile(values, 0.5);
  if (Math.abs(straight(middle) - 0.5) < 0.3) return { part: straight, least: brief(span[0]), most: brief(span[1]) };
  const sorted = values.filter(known).sort((a, b) => a - b);
  const rank = new Map();
  sorted.forEach((x, i) => rank.set(x, i));
  return { part: (x) => rank.get(x) / Math.max(1, sorted.length - 1), least: brief(span[0]), most: brief(span[1]), how: `coloured by rank, median ${brief(middle)}` };
}

/** A dot of the legend, as in the plot. */
const dot = (colour) => html`<svg width="10" height="10" aria-hidden="true">${circle(5, 5, colour, 3.5)}</svg>`;
const circle = (x, y, colour, r) => (colour
  ? html`<circle cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" r="${r}" fill="${colour}"/>`
  : html`<circle cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" r="${r - 0.4}" fill="none" stroke="var(--soft)" stroke-width="0.8"/>`);

function correlation(a, b) {
  const pairs = a.map((x, i) => [x, b[i]]).filter((p) => p.every(known));
  const mean = (k) => pairs.reduce((sum, p) => sum + p[k], 0) / pairs.length;
  const [ma, mb] = [mean(0), mean(1)];
  let [ab, aa, bb] = [0, 0, 0];
  for (const [x, y] of pairs) { ab += (x - ma) * (y - mb); aa += (x - ma) ** 2; bb += (y - mb) ** 2; }
  return ab / Math.sqrt(aa * bb);
}

function prepareScatter() {
  const axes = quantities.filter((q) => q.axis);
  const columns = quantities.filter((q) => q.group === "Columns");
  menu("across", axes[0], (q) => q.axis);
  menu("up", axes[1] || axes[0], (q) => q.axis);
  menu("colour", columns.find((q) => q.levels) || columns[0], () => true);
  for (const id of ["across", "up", "colour", "join"]) at(id).addEventListener("change", drawScatter);
  at("scatter-choice").addEventListener("submit", (event) => event.preventDefault());
  at("join-choice").hidden = !report.sequence;
  put("scatter-note", html`Each dot is ${report.sequence ? "a step of a sequence" : "a row of the data"} at its posterior means; point at one for its values${report.sequence && ", the rest of its sequence"} and a cross of one posterior standard deviation to each side.`);
}

function drawScatter() {
  const [across, up, colour] = ["across", "up", "colour"].map((id) => quantities[at(id).value]);
  if (!across || !up) {
    put("scatter", html`<p class="said">There is nothing to draw: no coordinate was sampled.</p>`);
    return;
  }
  const width = Math.max(240, at("scatter").clientWidth);
  const height = Math.min(520, Math.max(300, width * 0.62));
  const axis = (q, label) => (q.circular ? { extent: [-Math.PI, Math.PI], ticks: angleTicks, label } : { extent: q.range || extent(q.values), label });
  const plot = frame(width, height, axis(across, clip(across.label, width / 2)), axis(up, clip(up.label, width / 2)));
  const places = across.values.map((x, n) => (known(x) && known(up.values[n]) ? { n, x: plot.sx(x), y: plot.sy(up.values[n]) } : null)).filter(Boolean);
  const paint = colouring(colour);
  const painted = places.map((p) => ({ ...p, colour: paint.of(p.n) }));
  // The missing lie underneath: what is known matters more.
  painted.sort((a, b) => (a.colour === null ? 0 : 1) - (b.colour === null ? 0 : 1));
  const size = places.length > 600 ? 2.4 : 3.2;
  const r = across.circular || up.circular || across === up ? NaN : correlation(across.values, up.values);
  put("scatter", svg(width, height, `${up.label} against ${across.label}, ${many(places.length, "dot")}${colour ? `, coloured by ${colour.label}` : ""}`,
    html`${plot.axes}${at("join").checked && ways(places, across, up)}<g fill-opacity="0.8">${painted.map((p) => circle(p.x, p.y, p.colour, size))}</g><g class="pointed"></g>`));
  put("legend", paint.legend);
  const summary = `${many(places.length, report.sequence ? "time step" : "row")}${known(r) ? `, correlation ${fixed(r, 2)}` : ""}`;
  at("scatter-said").textContent = summary;
  const drawing = at("scatter").querySelector("svg");
  const pointed = drawing.querySelector(".pointed");
  drawing.addEventListener("pointermove", (event) => {
    const box = drawing.getBoundingClientRect();
    const [x, y] = [((event.clientX - box.left) * width) / box.width, ((event.clientY - box.top) * height) / box.height];
    let best = null;
    let nearest = 24 ** 2;
    for (const p of places) {
      const far = (p.x - x) ** 2 + (p.y - y) ** 2;
      if (far < nearest) { nearest = far; best = p; }
    }
    pointed.innerHTML = best ? html`${report.sequence && ways(places.filter((p) => report.sequence.of[p.n] === report.sequence.of[best.n]), across, up, "own way")}${cross(best, across, up, plot)}`.text : "";
    at("scatter-said").textContent = best ? [...new Set([across, up, colour])].filter(Boolean).map((q) => value(q, best.n)).join(" · ") : summary;
  });
  drawing.addEventListener("pointerleave", () => { pointed.innerHTML = ""; at("scatter-said").textContent = summary; });
}

/** A row's value of a quantity, in words. */
function value(q, n) {
  if (!known(q.values[n])) return `${q.label} missing`;
  if (q.levels) return `${q.label} ${q.levels[q.values[n]]}`;
  return `${q.label} ${brief(q.values[n])}${q.sd && known(q.sd[n]) ? ` ± ${brief(q.sd[n])}` : ""}`;
}

/** One posterior standard deviation to each side of a dot. */
function cross(p, across, up, plot) {
  const half = (q, to) => (q.sd && known(q.sd[p.n]) ? Math.abs(to(q.sd[p.n]) - to(0)) : 0);
  const [dx, dy] = [half(across, plot.sx), half(up, plot.sy)];
  return html`<path stroke="var(--ink)" d="M${p.x - dx} ${p.y}h${2 * dx}M${p.x} ${p.y - dy}v${2 * dy}"/><circle cx="${p.x}" cy="${p.y}" r="5" fill="none" stroke="var(--ink)" stroke-width="1.5"/>`;
}

/** Each sequence as a thin line in order of time; a jump across an angle's seam is not drawn. */
function ways(places, across, up, style = "way") {
  const { of, step } = report.sequence;
  const lines = new Map();
  for (const p of places) {
    if (!lines.has(of[p.n])) lines.set(of[p.n], []);
    lines.get(of[p.n]).push(p);
  }
  const jumps = (q, a, b) => q.circular && Math.abs(q.values[a.n] - q.values[b.n]) > Math.PI;
  const drawn = [...lines.values()].map((line) => line.sort((a, b) => step[a.n] - step[b.n])
    .map((p, i) => `${i && !jumps(across, line[i - 1], p) && !jumps(up, line[i - 1], p) ? "L" : "M"}${p.x.toFixed(1)} ${p.y.toFixed(1)}`).join(""));
  return html`<path class="${style}" d="${drawn.join("")}"/>`;
}
