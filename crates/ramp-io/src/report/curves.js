// Lines and histograms: training, free energy along a sequence, distributions of posterior means.

/**
 * Lines over a common horizontal axis, named at their ends, with the values under the pointer (or the arrow keys) in words.
 * A line has `label`, `style` and `points` of [x, y].
 */
function drawLines(id, x, y, lines) {
  const width = Math.max(240, at(id).clientWidth);
  const height = Math.min(300, Math.max(200, width * 0.4));
  const named = 8 + Math.max(...lines.map((line) => widthOf(line.label)));
  const all = lines.flatMap((line) => line.points);
  const xs = extent(all.map((p) => p[0]));
  const ys = extent(all.map((p) => p[1]));
  // A bad start far below must not flatten all that follows.
  const usual = quantile(all.map((p) => p[1]), 0.1);
  const cut = ys[0] < usual - 3 * (ys[1] - usual);
  if (cut) ys[0] = usual - (ys[1] - usual);
  const label = cut ? `${y.label} (the start is further below)` : y.label;
  const { room, sx, sy, axes } = frame(width - named, height, { extent: xs, ...x }, { extent: ys, label });
  const ends = lines.map((line) => {
    const last = line.points.filter((p) => p.every(known)).pop();
    return last ? { line, x: sx(last[0]), y: sy(Math.max(ys[0], last[1])) } : null;
  }).filter(Boolean).sort((a, b) => a.y - b.y);
  ends.forEach((end, i) => { if (i) end.y = Math.max(end.y, ends[i - 1].y + 14); });
  put(id, html`${svg(width, height, `${y.label} over ${x.label}: ${lines.map((line) => line.label).join(", ")}`, html`${axes}
    ${lines.map((line) => html`<path class="${line.style}" stroke-dasharray="${line.dash || ""}" d="${path(line.points.map((p) => (p.every(known) ? [sx(p[0]), sy(Math.max(ys[0], p[1]))] : [NaN, NaN])))}"/>`)}
    ${ends.map((end) => html`<text class="${end.line.style === "train" ? "soft" : ""}" x="${end.x + 8}" y="${end.y + 4}">${end.line.label}</text>`)}
    <path class="pointer" d=""/>`)}<p class="said"></p>`);
  const drawing = at(id).querySelector("svg");
  const said = at(id).querySelector(".said");
  const stops = [...new Set(all.map((p) => p[0]))].sort((a, b) => a - b);
  const values = lines.map((line) => new Map(line.points.map((p) => [p[0], p[1]])));
  let here = stops.length - 1;
  const show = (i) => {
    here = Math.min(stops.length - 1, Math.max(0, i));
    const stop = stops[here];
    drawing.querySelector(".pointer").setAttribute("d", `M${sx(stop)} ${room.top}V${room.bottom}`);
    const parts = lines.map((line, k) => [line.label, values[k].get(stop)]).filter((part) => known(part[1]));
    said.textContent = `${x.label} ${count(stop)}: ${parts.map(([label, value]) => `${label} ${fixed(value, 3)}`).join(", ")} nats`;
  };
  drawing.setAttribute("tabindex", "0");
  drawing.addEventListener("pointermove", (event) => {
    const box = drawing.getBoundingClientRect();
    const wanted = ((event.clientX - box.left) * width) / box.width;
    let best = 0;
    stops.forEach((stop, i) => { if (Math.abs(sx(stop) - wanted) < Math.abs(sx(stops[best]) - wanted)) best = i; });
    show(best);
  });
  drawing.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    show(Math.min(stops.length - 1, Math.max(0, here + by)));
  });
}

function drawTraining() {
  if (!report.training.length) {
    put("training", html`<p class="said">No iteration was recorded.</p>`);
    return;
  }
  const lines = [{ label: "learned from", style: "train", points: report.training.filter((p) => known(p.free_energy)).map((p) => [p.iteration, p.free_energy]) }];
  const held = report.training.filter((p) => known(p.held_out)).map((p) => [p.iteration, p.held_out]);
  if (held.length) lines.push({ label: report.folds ? "cross-validation" : "validation", style: "held", points: held });
  drawLines("training", { label: "iteration" }, { label: "free energy per row and latent, nats" }, lines);
}

const dashes = ["", "6 3", "2 3", "9 3 2 3"];

function drawSteps() {
  const sequence = report.sequence;
  if (!sequence || !sequence.curves.length) return;
  at("steps-section").hidden = false;
  const one = sequence.curves.length === 1;
  const points = (values) => values.map((value, i) => [i + 1, value]);
  const lines = sequence.curves.slice(0, dashes.length).flatMap((curve, i) => {
    const held = curve.held_out.length > 0;
    const kinds = [{ label: one ? "learned from" : name(curve.variable), style: "train", dash: dashes[i], points: points(curve.train) }];
    if (held) kinds.push({ label: one ? "held out" : name(curve.variable), style: "held", dash: dashes[i], points: points(curve.held_out) });
    return one || !held ? kinds : kinds.slice(1);
  });
  drawLines("steps", { label: `step (${sequence.time})` }, { label: `${one ? "" : heldOut ? "held-out " : ""}free energy per sequence, nats` }, lines);
}

/** The prior's density at a value. */
function density(prior, x) {
  if (prior.normal) {
    const z = (x - prior.normal.mean) / prior.normal.sd;
    return Math.exp(-z * z / 2) / (prior.normal.sd * Math.sqrt(2 * Math.PI));
  }
  const { low, high } = prior.uniform;
  return x >= low && x <= high ? 1 / (high - low) : 0;
}

function histogram(coordinate) {
  const width = 190;
  const height = 104;
  const ground = height - 20;
  const values = coordinate.circular ? coordinate.mean.map(wrap) : coordinate.mean;
  const prior = coordinate.prior;
  const reach = prior && prior.normal ? [prior.normal.mean - 2.6 * prior.normal.sd, prior.normal.mean + 2.6 * prior.normal.sd] : [];
  const span = coordinate.circular ? [-Math.PI, Math.PI] : coordinate.range || extent([...values, ...reach]);
  const bins = new Array(36).fill(0);
  const there = values.filter(known);
  const bin = (span[1] - span[0]) / bins.length;
  there.forEach((x) => { bins[Math.min(bins.length - 1, Math.max(0, Math.floor((x - span[0]) / bin)))] += 1 / (there.length * bin); });
  let outline = [];
  if (prior && prior.curve) outline = prior.curve;
  else if (prior) outline = Array.from({ length: 73 }, (_, i) => span[0] + (i * (span[1] - span[0])) / 72).map((x) => [x, density(prior, x)]);
  const most = Math.max(...bins, ...outline.map((p) => p[1]).filter(known), 1e-9);
  const sx = scale(span, 2, width - 2);
  const sy = scale([0, most], ground, 4);
  const marks = coordinate.circular ? angleTicks.filter((_, i) => i % 2 === 0) : ticks(span, 4);
  const typical = quantile(coordinate.sd, 0.5);
  return html`<figure><figcaption>${coordinate.label} <span class="soft">± ${brief(typical)}</span></figcaption>
    <svg width="100%" viewBox="0 0 ${width} ${height}" role="img" aria-label="Distribution of the posterior means of ${coordinate.label}">
    ${bins.map((b, i) => b > 0 && html`<rect class="bar" x="${(sx(span[0] + i * bin) + 0.3).toFixed(2)}" y="${sy(b).toFixed(2)}" width="${(sx(span[0] + bin) - sx(span[0]) - 0.6).toFixed(2)}" height="${(ground - sy(b)).toFixed(2)}"/>`)}
    <path class="prior" d="${path(outline.map((p) => [sx(p[0]), sy(p[1])]))}"/>
    <path class="axis" d="M2 ${ground + 0.5}H${width - 2}"/>
    ${marks.map((t) => html`<text class="soft middle" x="${Math.min(width - 6, Math.max(8, sx(t.value)))}" y="${height - 5}">${t.text}</text>`)}
    </svg></figure>`;
}

function drawDistributions() {
  const shown = coordinates.slice(0, 120);
  put("distributions-note", html`How the posterior means of ${many(report.sampled_rows, report.sequence ? "time step" : "row")} are spread, with the median posterior standard deviation after the name;${shown.some((c) => c.prior) && " the dashed outline is the prior, and means crowd inside it the more the less the data say;"} several heaps hint at groups.${shown.length < coordinates.length && ` The first ${count(shown.length)} of ${count(coordinates.length)} are drawn.`}`);
  put("distributions", html`${shown.map(histogram)}`);
}
