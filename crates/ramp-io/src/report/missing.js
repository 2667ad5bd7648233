// What is missing: how much of every column, and which columns are missing together.

function drawMissing() {
  const columns = report.columns.map((column, i) => ({ ...column, i }));
  const gaps = columns.filter((column) => column.missing > 0);
  if (!gaps.length) {
    put("missing-note", html`No cell of the ${many(columns.length, "column")} is missing.`);
    return;
  }
  // All columns when that stays readable, else the ones with most gaps.
  const crowded = columns.length > 60;
  const shown = crowded ? gaps.sort((a, b) => b.missing - a.missing).slice(0, 60) : columns;
  const room = at("missing").clientWidth;
  const nameRoom = Math.min(room > 500 ? 180 : 100, 8 + Math.max(...shown.map((column) => widthOf(column.name))));
  const barRoom = room > 500 ? 120 : 60;
  const cell = 15;
  const left = nameRoom + barRoom + 56;
  const patterns = report.missing_patterns.slice(0, Math.max(4, Math.min(24, Math.floor((room - left - 60) / cell))));
  put("missing-note", html`Bars: how much of a column is missing. Squares: the most frequent sets of columns missing together, one set per strip, with the number of rows above it; sets that are more frequent than chance say that gaps are no accident.${shown.some((column) => !column.observed) && " Columns in grey are not in the model."}${crowded && ` The ${count(shown.length)} columns with most gaps of ${count(columns.length)} are drawn.`}`);
  const high = 18;
  const tallest = 44;
  const top = tallest + 18 + Math.max(10, ...patterns.map((pattern) => widthOf(count(pattern.rows))));
  const mostRows = Math.max(1, ...patterns.map((pattern) => pattern.rows));
  const mostMissing = Math.max(...shown.map((column) => column.missing));
  const y = (k) => top + k * high;
  const height = y(shown.length) + 4;
  const width = left + cell * patterns.length + 10;
  const rows = shown.map((column, k) => html`
    <text class="${column.observed ? "" : "soft"}" x="0" y="${y(k) + 11}">${clip(column.name, nameRoom - 8)}<title>${column.name}</title></text>
    <rect class="bar" x="${nameRoom}" y="${y(k) + 3}" width="${((barRoom * column.missing) / mostMissing).toFixed(1)}" height="8"/>
    <text class="soft" x="${nameRoom + (barRoom * column.missing) / mostMissing + 5}" y="${y(k) + 11}">${percent(column.missing)}</text>`);
  const strips = patterns.map((pattern, p) => {
    const x = left + p * cell;
    const tall = (tallest * pattern.rows) / mostRows;
    return html`<rect class="bar" x="${x + 2}" y="${top - 6 - tall}" width="${cell - 6}" height="${Math.max(0.75, tall)}"/>
      <text class="soft" transform="translate(${x + cell / 2 + 2} ${top - 10 - tall}) rotate(-90)">${count(pattern.rows)}</text>
      ${shown.map((column, k) => html`<rect class="${pattern.missing[column.i] ? "bar" : "ground"}" x="${x}" y="${y(k)}" width="${cell - 2}" height="${high - 4}"/>`)}`;
  });
  put("missing", svg(width, height, `Missing values: ${shown.slice(0, 20).map((column) => `${column.name} ${percent(column.missing)}`).join(", ")}`,
    html`${rows}${strips}<text class="soft" x="0" y="${top - 8}">missing</text><text class="soft end" x="${left - 8}" y="${top - 8}">rows</text>`));
  allowScrolling("missing");
}
