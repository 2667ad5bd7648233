// What stands in words and tables: the summary, the latents, the facts.

const list = (items) => (items.length < 2 ? items.join("") : `${items.slice(0, -1).join(", ")} and ${items[items.length - 1]}`);

function drawSummary() {
  const unit = report.sequence ? "sequence" : "row";
  const latents = report.latents;
  const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;
  const first = [
    `${many(latents.length, "latent")} behind ${many(report.observed_columns, "column")} of ${report.data}: `,
    report.folds
      ? `learned from ${many(report.rows - report.held_out_rows - report.validation_rows, unit)}; judged by cross-validation, ${many(report.folds, "fit")} to other parts of the ${unit}s; `
      : report.held_out_rows
      ? `learned from ${many(report.rows - report.held_out_rows - report.validation_rows, unit)}, judged on ${count(report.held_out_rows)} held out; `
      : `learned from ${many(report.rows - report.validation_rows, unit)}, none held out; `,
    report.missing_cells ? `${percent(report.missing_cells)} of their cells are missing.` : "no cell of them is missing.",
  ].join("");
  let second = "";
  if (latents.length) {
    const best = latents.reduce((a, b) => (energy(b) > energy(a) ? b : a));
    const here = mean(latents.map(energy));
    second = `The ${heldOut ? "held-out " : ""}free energy is ${nats(here)} nats per latent`;
    if (heldOut) {
      const gap = mean(latents.map((latent) => latent.free_energy.train)) - here;
      second += Math.abs(gap) < 0.005 ? ", the same as on the rows learned from" : `, ${nats(Math.abs(gap))} ${gap > 0 ? "below" : "above"} that of the rows learned from`;
    }
    second += latents.length > 1 ? `; most is explained by ${name(best.variable)} (${nats(energy(best))}).` : ".";
  }
  const warned = latents.filter((latent) => latent.warnings.length);
  put("summary", html`<p>${first}</p><p>${second}</p>
    ${warned.length > 0 && html`<p class="warn">To look at:</p><ul class="warn">${warned.slice(0, 12).map((latent) => latent.warnings.map((warning) => html`<li>${marked(says(latent, warning))}</li>`))}</ul>`}
    ${warned.length > 12 && html`<p class="warn">… and ${many(warned.length - 12, "other latent")}, in the table below.</p>`}`);
}

/** A warning names its latent, once. */
const says = (latent, warning) => (warning.includes(name(latent.variable)) ? warning : `${name(latent.variable)}: ${warning}`);

function drawLatents() {
  const all = report.latents.flatMap((latent) => latent.contributions.map((b) => b.nats)).filter(known);
  const low = Math.min(0, ...all);
  const high = Math.max(1e-9, ...all);
  const place = (x) => (100 * (x - low)) / (high - low);
  const names = Math.min(150, Math.max(24, ...report.latents.flatMap((latent) => latent.contributions.map((b) => widthOf(b.from) * 1.08))));
  const bar = ({ from, nats: x }) => html`<span title="${from}">${from}</span>
    <span class="track">${known(x) && html`<i class="${x < 0 ? "less" : ""}" style="left:${place(Math.min(0, x))}%;width:${Math.max(0.5, place(Math.max(0, x)) - place(Math.min(0, x)))}%"></i>`}</span>
    <span class="number">${nats(x)}</span>`;
  const contributions = (latent) => {
    const sorted = [...latent.contributions].sort((a, b) => b.nats - a.nats);
    const shown = sorted.length > 9 ? 7 : sorted.length;
    return html`<div><div class="bars">${sorted.slice(0, shown).map(bar)}</div>
      ${shown < sorted.length && html`<details><summary>${count(sorted.length - shown)} more</summary><div class="bars">${sorted.slice(shown).map(bar)}</div></details>`}</div>`;
  };
  const spread = (x) => html`<div class="spread"><span class="number">${fixed(x, 2)}</span><span class="track of-one">${known(x) && html`<i style="left:0;width:${100 * Math.min(1, Math.max(0, x))}%"></i>`}</span></div>`;
  put("latents", html`<table style="--names:${names}px">
    <thead><tr><th scope="col">latent</th>${heldOut && html`<th scope="col" class="number">held out<br>nats</th>`}<th scope="col" class="number">learned from<br>nats</th><th scope="col">contribution of each neighbour<br>nats</th><th scope="col">spread<br>of the prior’s</th></tr></thead>
    <tbody>${report.latents.map((latent) => html`<tr>
      <th scope="row">${name(latent.variable)}<span class="family">${latent.family}</span></th>
      ${heldOut && html`<td class="number" data-is="held out, nats">${nats(latent.free_energy.held_out)}</td>`}
      <td class="number" data-is="learned from, nats">${nats(latent.free_energy.train)}</td>
      <td data-is="contribution, nats">${contributions(latent)}</td>
      <td data-is="spread">${spread(latent.spread)}</td></tr>
      ${latent.warnings.length > 0 && html`<tr class="says"><td colspan="${heldOut ? 5 : 4}" class="warn">${latent.warnings.map((warning) => html`<div>${marked(warning)}</div>`)}</td></tr>`}`)}
    </tbody></table>`);
}

function drawFacts() {
  put("facts", html`${report.facts.map(([what, value]) => html`<dt>${what}</dt><dd>${marked(value)}</dd>`)}`);
  at("settings").textContent = report.settings;
  at("copy").addEventListener("click", async () => {
    let done = true;
    try {
      await navigator.clipboard.writeText(report.settings);
    } catch {
      // Some browsers keep the clipboard from pages that are files: select the text, and copy in the old way.
      getSelection().selectAllChildren(at("settings"));
      done = document.execCommand("copy");
    }
    at("copied").textContent = done ? "copied" : "selected: copy it with Ctrl-C";
  });
}
