// Ranks of held-out cells among what they may be: a histogram, with the band that even ranks stay in.

function drawRanks() {
  const ranks = report.ranks;
  if (!ranks) return;
  at("ranks-section").hidden = false;
  const all = ranks.histogram.reduce((sum, n) => sum + n, 0);
  const bins = ranks.histogram.length;
  const even = all / bins;
  const band = 2 * Math.sqrt(even * (1 - 1 / bins));
  const width = 860;
  const height = 190;
  const ground = height - 22;
  const top = Math.max(even + 1.5 * band, ...ranks.histogram);
  const sx = scale([0, bins], 6, width - 6);
  const sy = scale([0, top], ground, 8);
  put("ranks-note", html`${ranks.verdict}`);
  put("ranks", html`<svg width="100%" viewBox="0 0 ${width} ${height}" role="img" aria-label="Ranks of ${count(all)} held-out cells in ${bins} bins from 0 to 1: from ${Math.min(...ranks.histogram)} to ${Math.max(...ranks.histogram)} in a bin, ${even.toFixed(0)} if even">
    ${ranks.histogram.map((n, i) => html`<rect class="bar" x="${(sx(i) + 0.75).toFixed(2)}" y="${sy(n).toFixed(2)}" width="${(sx(1) - sx(0) - 1.5).toFixed(2)}" height="${(ground - sy(n)).toFixed(2)}"><title>${(i / bins).toFixed(2)} to ${((i + 1) / bins).toFixed(2)}: ${n}</title></rect>`)}
    <path class="axis" d="M4 ${ground}H${width - 4}"/>
    <path class="prior" d="M4 ${sy(even + band).toFixed(2)}H${width - 4}M4 ${sy(Math.max(0, even - band)).toFixed(2)}H${width - 4}"/>
    <text class="soft" x="6" y="${height - 6}">0: below all</text>
    <text class="soft" x="${width - 6}" y="${height - 6}" text-anchor="end">1: above all</text></svg>`);
}
