// The tree: root to the left, observations in one column to the right; a sequence as three steps and its last.

/**
 * Who hangs on whom, seen from the root. Factors of three and more members are nodes of their own behind the variables;
 * pairs are plain edges.
 */
function rooted() {
  const variables = report.variables.length;
  const beside = Array.from({ length: variables + report.factors.length }, () => []);
  const join = (a, b) => { beside[a].push(b); beside[b].push(a); };
  report.factors.forEach((members, f) => {
    const there = [...new Set(members)].filter((v) => v >= 0 && v < variables);
    if (there.length === 2) join(there[0], there[1]);
    if (there.length > 2) there.forEach((v) => join(v, variables + f));
  });
  const children = beside.map(() => []);
  const depth = beside.map(() => 0);
  const seen = beside.map(() => false);
  const order = [];
  const walk = (root) => {
    const stack = [root];
    seen[root] = true;
    while (stack.length) {
      const node = stack.pop();
      order.push(node);
      for (const next of beside[node]) {
        if (seen[next]) continue;
        seen[next] = true;
        depth[next] = depth[node] + 1;
        children[node].push(next);
      }
      for (let i = children[node].length - 1; i >= 0; i -= 1) stack.push(children[node][i]);
    }
  };
  const latents = report.variables.map((v, i) => (v.latent ? i : -1)).filter((i) => i >= 0);
  const start = report.root !== null && report.root < variables ? report.root : middle(beside, latents);
  const roots = [];
  for (const root of [start, ...latents, ...report.variables.keys()]) {
    if (root === undefined || seen[root]) continue;
    roots.push(root);
    walk(root);
  }
  return { children, depth, order, roots, variables };
}

/** The latent halfway along the longest path: from there the drawing is shallowest. */
function middle(beside, latents) {
  const spread = (from) => {
    const before = new Map([[from, null]]);
    const line = [from];
    for (const node of line) {
      for (const next of beside[node]) {
        if (!before.has(next)) { before.set(next, node); line.push(next); }
      }
    }
    return { last: line[line.length - 1], before };
  };
  if (!latents.length) return undefined;
  const end = spread(latents[0]).last;
  const { last, before } = spread(end);
  const way = [];
  for (let node = last; node !== null; node = before.get(node)) way.push(node);
  const centre = way.length / 2;
  return way.filter((node) => latents.includes(node)).sort((a, b) => Math.abs(way.indexOf(a) - centre) - Math.abs(way.indexOf(b) - centre))[0];
}

const latentOf = new Map(report.latents.map((latent) => [latent.variable, latent]));
const mostEnergy = Math.max(1e-9, ...report.latents.map(energy).filter(known));
const largest = 13;

/** A node's mark at a place; area in proportion to free energy. */
function mark(node, x, y, variables) {
  if (node >= variables) return html`<rect class="factor" x="${x - 3.5}" y="${y - 3.5}" width="7" height="7"><title>hang together</title></rect>`;
  const variable = report.variables[node];
  if (!variable.latent) return html`<rect class="observed" x="${x - 4}" y="${y - 4}" width="8" height="8"><title>${variable.name}</title></rect>`;
  const latent = latentOf.get(node);
  const r = radius(node);
  const something = latent && energy(latent) > 0;
  return html`<circle class="${something ? "latent" : "nothing"}" cx="${x}" cy="${y}" r="${r}"><title>${variable.name}: ${latent ? `${nats(energy(latent))} nats` : "not measured"}</title></circle>
    ${latent && latent.warnings.length > 0 && html`<circle class="warned" cx="${x}" cy="${y}" r="${r + 3}"/>`}`;
}

function radius(node) {
  const latent = latentOf.get(node);
  return Math.max(3, largest * Math.sqrt(Math.max(0, latent && known(energy(latent)) ? energy(latent) : 0) / mostEnergy));
}

function drawTree() {
  put("tree-note", html`Circles are latents, with their ${heldOut && "held-out "}free energy in nats as number and area; boxes are columns of the data; ${report.factors.some((f) => f.length > 2) && "small squares join three or more that hang together; "}lines say who depends on whom directly.${report.latents.some((l) => l.warnings.length) && " A ring marks a warning."}`);
  const tree = rooted();
  if (!tree.order.length) return;
  const room = at("tree").clientWidth;
  const drawn = report.sequence ? chainDrawing(tree, room) : treeDrawing(tree, room);
  put("tree", drawn);
  at("tree").classList.toggle("long", !report.sequence && report.variables.filter((v) => !v.latent).length > 60);
  allowScrolling("tree");
  // A drawing longer than its box opens at its root.
  const root = at("tree").querySelector("circle");
  if (root) at("tree").scrollTop = root.cy.baseVal.value - at("tree").clientHeight / 2;
}

function treeDrawing(tree, room) {
  const { children, depth, order, variables } = tree;
  const ends = order.filter((node) => !children[node].length);
  const row = new Map();
  ends.forEach((node, i) => row.set(node, i));
  for (const node of [...order].reverse()) {
    const below = children[node].map((child) => row.get(child));
    if (below.length) row.set(node, (Math.min(...below) + Math.max(...below)) / 2);
  }
  const named = (node) => node < variables && report.variables[node].latent;
  // Rows are as close as the labels of neighbouring latents allow.
  const columns = new Map();
  for (const node of order.filter(named)) {
    if (!columns.has(depth[node])) columns.set(depth[node], []);
    columns.get(depth[node]).push(row.get(node));
  }
  const closest = Math.min(Infinity, ...[...columns.values()].flatMap((rows) => rows.sort((a, b) => a - b).slice(1).map((r, i) => r - rows[i])));
  const high = Math.min(30, Math.max(ends.length > 16 ? 19 : 23, 44 / closest));
  const twoLines = high * closest >= 2 * largest + 28;

  const deepest = Math.max(1, ...order.map((node) => depth[node]));
  const nameRoom = room > 500 ? 180 : 84;
  const endNames = ends.filter((node) => !named(node)).map((node) => widthOf(clip(name(node), nameRoom)));
  const right = 14 + Math.max(12, ...endNames);
  const number = (node) => (latentOf.has(node) ? nats(energy(latentOf.get(node))) : "");
  const label = (node, fits) => clip(name(node), twoLines ? fits : fits - widthOf(number(node)) - 5);
  const labelWidth = (node, fits) => widthOf(label(node, fits)) + (twoLines ? 0 : widthOf(number(node)) + 5);
  const left = Math.max(largest + 4, ...tree.roots.filter(named).map((node) => labelWidth(node, 130) / 2 + 3));
  // The way to the observations carries no label and may be short.
  const last = Math.min(1, Math.max(0.35, (room - 360) / 300));
  const step = Math.min(200, Math.max(64, (room - left - right) / (deepest - 1 + last)));
  const width = left + right + step * (deepest - 1 + last);
  const top = largest + 22;
  const height = top + high * (ends.length - 1) + largest + 22;
  const x = (node) => left + step * (children[node].length || named(node) ? depth[node] : deepest - 1 + last);
  const y = (node) => top + high * row.get(node);

  const lines = order.flatMap((node) => children[node].map((child) => {
    const turn = (x(node) + Math.min(x(child), x(node) + step)) / 2;
    return `M${x(node)} ${y(node)}C${turn} ${y(node)} ${turn} ${y(child)} ${Math.min(x(child), x(node) + step)} ${y(child)}H${x(child)}`;
  }));
  const labels = order.map((node) => {
    if (node >= variables) return "";
    if (!named(node)) return html`<text x="${x(node) + 9}" y="${y(node) + 4}">${clip(name(node), nameRoom)}<title>${name(node)}</title></text>`;
    // A label may reach halfway to the next column, and up to the names at the right.
    const before = depth[node] ? step / 2 - 2 : x(node) - 2;
    const behind = Math.min(step / 2 - 2, depth[node] < deepest - 1 ? Infinity : step * last - 8);
    const wide = labelWidth(node, before + behind);
    const centre = Math.min(x(node) + behind - wide / 2, Math.max(x(node) - before + wide / 2, x(node)));
    const above = y(node) - radius(node) - 6;
    return twoLines
      ? html`<text class="halo middle" x="${centre}" y="${above}">${label(node, before + behind)}<title>${name(node)}</title></text><text class="halo middle soft" x="${x(node)}" y="${y(node) + radius(node) + 14}">${number(node)}</text>`
      : html`<text class="halo middle" x="${centre}" y="${above}">${label(node, before + behind)}<tspan class="soft" dx="5">${number(node)}</tspan><title>${name(node)}</title></text>`;
  });
  return svg(width, height, `Tree of ${many(report.latents.length, "latent")} and ${many(ends.length, "leaf", "leaves")}`,
    html`<path class="edge" d="${lines.join("")}"/>${order.map((node) => mark(node, x(node), y(node), variables))}${labels}`);
}

/** One step as an indented list with names, then its copies, joined where latents are tied. */
function chainDrawing(tree, room) {
  const { children, depth, order, variables } = tree;
  const high = 26;
  const indent = 26;
  const names = Math.max(...order.filter((node) => node < variables).map((node) => indent * depth[node] + widthOf(clip(name(node), 110)) + (report.variables[node].latent ? 40 : 0)));
  const inner = indent * Math.max(...order.map((node) => depth[node]));
  const left = names + 28;
  const { steps, time } = report.sequence;
  const copies = steps > 4 ? [1, 2, 3, steps] : Array.from({ length: Math.max(1, steps) }, (_, i) => i + 1);
  const apart = Math.min(150, Math.max(inner + 2 * largest + 12, (room - left - inner - 20) / (copies.length - 0.4)));
  const offset = (i) => left + apart * (i + (steps > 4 && i === 3 ? 0.4 : 0));
  const top = largest + 8;
  const x = (node, i) => offset(i) + indent * depth[node];
  const y = (node) => top + high * order.indexOf(node);
  const height = top + high * order.length + 22;
  const edges = copies.flatMap((_, i) => order.flatMap((node) => children[node].map((child) => `M${x(node, i)} ${y(node)}V${y(child)}H${x(child, i)}`)));
  const ties = report.sequence.links.filter(([a, b]) => order.includes(a) && order.includes(b)).flatMap(([a, b]) => copies.slice(1).map((_, i) => {
    const dashed = steps > 4 && i === 2;
    return html`<path class="tied" stroke-dasharray="${dashed ? "2 5" : ""}" d="M${x(a, i)} ${y(a)}L${x(b, i + 1)} ${y(b)}"/>`;
  }));
  const labels = order.filter((node) => node < variables).map((node) => {
    const latent = latentOf.get(node);
    return html`<text x="${indent * depth[node]}" y="${y(node) + 4}">${clip(name(node), 110)}${latent && html`<tspan class="soft" dx="6">${nats(energy(latent))}</tspan>`}<title>${name(node)}</title></text>`;
  });
  const times = copies.map((t, i) => html`<text class="soft middle" x="${offset(i) + inner / 2}" y="${height - 4}">${t}</text>`);
  const width = offset(copies.length - 1) + inner + largest + 8;
  return svg(width, height, `A chain of ${many(steps, "step")} over ${time}`, html`<path class="edge" d="${edges.join("")}"/>${ties}
    ${copies.map((_, i) => order.map((node) => mark(node, x(node, i), y(node), variables)))}${labels}
    <text class="soft" x="0" y="${height - 4}">${clip(time, 100)}</text>${times}`);
}
