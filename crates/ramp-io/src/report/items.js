// What each item does to its latent: small curves of the latent's mean by answer.

function itemCurve(item, reach) {
  const width = 190;
  const height = 104;
  const ground = height - 20;
  const sx = scale([0, Math.max(1, item.means.length - 1)], 10, width - 10);
  const sy = scale([-reach, reach], ground - 4, 6);
  const points = item.means.map((mean, i) => [sx(i), sy(mean)]);
  const ends = item.answers.length ? [[0, item.answers[0], ""], [item.answers.length - 1, item.answers[item.answers.length - 1], "end"]] : [];
  const wrong = item.direction === "not monotone";
  return html`<figure><figcaption>${item.name} <span class="${wrong ? "warn" : "soft"}">${item.direction} ${item.latent}</span></figcaption>
    <svg width="100%" viewBox="0 0 ${width} ${height}" role="img" aria-label="Mean of ${item.latent} by answer to ${item.name}: ${item.direction}">
    <path class="axis" d="M2 ${sy(0)}H${width - 2}"/>
    <path class="held" d="${path(points)}"/>
    ${points.map(([x, y]) => html`<circle class="dot" cx="${x.toFixed(2)}" cy="${y.toFixed(2)}" r="2.4"/>`)}
    ${ends.map(([i, text, side]) => html`<text class="soft" x="${sx(i)}" y="${height - 5}" text-anchor="${side || "start"}">${String(text).slice(0, 12)}</text>`)}
    </svg></figure>`;
}

function drawItems() {
  if (!report.items.length) return;
  at("items-section").hidden = false;
  const shown = report.items.slice(0, 120);
  const reach = Math.max(0.1, ...shown.flatMap((item) => item.means.filter(known).map(Math.abs)));
  put("items-note", html`The mean that each answer would give the latent if nothing else were known, all on one scale; the line is 0, the mean of the prior. A rising curve is marked +, a falling one −.${shown.length < report.items.length && ` The first ${count(shown.length)} of ${count(report.items.length)} are drawn.`}`);
  put("items", html`${shown.map((item) => itemCurve(item, reach))}`);
}
