// One sequence over time: the latent with its band, what was observed, and what is foretold behind the end.

/** A panel: a band, a line and dots over the steps, with a mark where the future begins. */
function drawBand(band, series, width) {
  const height = 150;
  const steps = series.times.length;
  const inside = (values) => values.filter(known);
  const ys = extent([...inside(band.low), ...inside(band.high), ...inside(band.middle), ...inside(band.observed)]);
  const every = Math.max(1, Math.ceil(steps / Math.max(2, width / 150)));
  const marks = series.times.map((text, value) => ({ text, value })).filter((t) => t.value % every === 0 && t.value < steps - every / 3);
  const { room, sx, sy, axes } = frame(width, height, { extent: [0, steps - 1], label: "", ticks: marks }, { extent: ys, label: band.label });
  const at = (values) => values.map((y, t) => (known(y) ? [sx(t), sy(y)] : [NaN, NaN]));
  // A step that nothing is known of ends one piece of the band and begins the next.
  const pieces = [];
  for (let t = 0; t < steps; t += 1) {
    if (!known(band.low[t]) || !known(band.high[t])) continue;
    if (!t || !known(band.low[t - 1])) pieces.push([]);
    pieces[pieces.length - 1].push(t);
  }
  const outline = (piece) => [...piece.map((t) => [sx(t), sy(band.high[t])]), ...piece.reverse().map((t) => [sx(t), sy(band.low[t])])];
  const end = sx(series.steps - 0.5);
  return html`<figure>${svg(width, height, `${band.label} over time, ${many(steps - series.steps, "step")} of them foretold`, html`${axes}
    ${pieces.map((piece) => html`<path class="band" d="${path(outline(piece))}Z"/>`)}
    <path class="held" d="${path(at(band.middle))}"/>
    ${at(band.observed).filter((p) => p.every(known)).map((p) => html`<circle class="seen" cx="${p[0].toFixed(1)}" cy="${p[1].toFixed(1)}" r="1.4"/>`)}
    <path class="pointer" d="M${end} ${room.top}V${room.bottom}"/>`)}</figure>`;
}

function drawOverTime() {
  const series = report.over_time;
  if (!series || !series.bands.length) return;
  at("over-time-section").hidden = false;
  const width = Math.max(240, at("over-time").clientWidth);
  put("over-time-note", html`${series.name ? html`The longest sequence, ${series.name}, ` : "The series "}at its last ${many(series.steps, "step")}, and ${many(series.times.length - series.steps, "step")} that nobody has seen behind the upright line. Latents with one standard deviation either way; columns as dots where they were observed, with their expected value and an interval of ${percent(series.interval)} behind the line.`);
  put("over-time", html`${series.bands.slice(0, 12).map((band) => drawBand(band, series, width))}`);
}
