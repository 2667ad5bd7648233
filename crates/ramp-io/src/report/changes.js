// What changes of the tree gain, as `ramp diagnose` has found: a list, those that chance does not explain first.

function drawChanges() {
  const changes = report.changes || [];
  if (!changes.length) return;
  at("changes-section").hidden = false;
  const clear = changes.filter((change) => change.gain > 0 && change.p_value < 0.05).length;
  const verdict = clear ? `${many(clear, "change")} of ${count(changes.length)} gain more than chance` : `none of ${many(changes.length, "change")} gains more than chance`;
  put("changes-note", html`Each change was made, the latents around it fitted again, and compared with the tree as it is, given as much more training, on the held-out rows. <b>Gain</b> is in nats a row; p is corrected for how many were tried. Here ${verdict}.`);
  const shown = changes.length > 14 ? Math.max(10, Math.min(clear, 40)) : changes.length;
  const reach = Math.max(1e-9, ...changes.slice(0, shown).map(({ gain, standard_error: error }) => Math.abs(gain) + 2 * error));
  const place = (x) => (50 + (50 * x) / reach).toFixed(2);
  const row = ({ sentence, gain, standard_error: error, p_value: p }) => html`<tr>
    <td class="number" data-is="gain, nats">${gain < 0 ? "−" : "+"}${Math.abs(gain).toFixed(3)} ± ${error.toFixed(3)}</td>
    <td class="number" data-is="p">${p < 0.001 ? "< 0.001" : p.toFixed(3)}</td>
    <td data-is="two errors on each side"><span class="track change"><i class="${gain < 0 ? "less" : ""}" style="left:${place(gain - 2 * error)}%;width:${((200 * error) / reach).toFixed(2)}%"></i><em></em></span></td>
    <th scope="row" class="${gain > 0 && p < 0.05 ? "" : "soft"}">${sentence}</th></tr>`;
  const table = (some) => html`<table class="changes"><thead><tr><th scope="col" class="number">gain<br>nats</th><th scope="col" class="number">p</th><th scope="col">two errors on<br>each side; line: 0</th><th scope="col">change</th></tr></thead><tbody>${some.map(row)}</tbody></table>`;
  put("changes", html`${table(changes.slice(0, shown))}${shown < changes.length && html`<details><summary>${count(changes.length - shown)} more</summary>${table(changes.slice(shown))}</details>`}`);
}
