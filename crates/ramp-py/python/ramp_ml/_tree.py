"""Where the variables of a tree stand in a drawing, and the drawing as SVG."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import Any

LEAVES_DRAWN = 60


@dataclass
class Drawing:
    """A tree, root to the left and leaves to the right, with what each latent explains."""

    #: Names, and whether each is a latent.
    variables: list[tuple[str, bool]]
    #: Which of them hang together.
    factors: list[list[int]]
    root: int
    #: Free energy of each latent, in nats.
    explained: dict[str, float] = field(default_factory=dict)
    #: What each neighbour contributes to a latent, in nats.
    contributions: dict[tuple[str, str], float] = field(default_factory=dict)
    chain: bool = False

    @classmethod
    def of_report(cls, report: dict[str, Any]) -> Drawing:
        """The tree of a fit."""
        variables = [(v["name"], bool(v["latent"])) for v in report["variables"]]
        explained, contributions = {}, {}
        for latent in report["latents"]:
            name = variables[latent["variable"]][0]
            found = latent["free_energy"]
            value = found["train"] if found["held_out"] is None else found["held_out"]
            if value is not None:
                explained[name] = float(value)
            for part in latent["contributions"]:
                if part["nats"] is not None:
                    contributions[name, part["from"]] = float(part["nats"])
        root = report["root"] or 0
        chain = report["sequence"] is not None
        return cls(variables, report["factors"], root, explained, contributions, chain)

    def layout(self) -> tuple[list[tuple[float, float]], list[tuple[int, int]]]:
        """Places, with depth from left to right and leaves one under the other, and edges from parent to child.

        >>> drawing = Drawing([("z", True), ("a", False), ("b", False)], [[0, 1], [0, 2]], 0)
        >>> drawing.layout()
        ([(0.0, 0.5), (1.0, 0.0), (1.0, 1.0)], [(0, 1), (0, 2)])
        """
        neighbours: list[list[int]] = [[] for _ in self.variables]
        for factor in self.factors:
            for i in factor:
                neighbours[i].extend(j for j in factor if j != i)
        children: list[list[int]] = [[] for _ in self.variables]
        order, seen = [self.root], {self.root}
        for i in order:
            for j in neighbours[i]:
                if j not in seen:
                    seen.add(j)
                    children[i].append(j)
                    order.append(j)
        depth = {self.root: 0}
        for i in order:
            for j in children[i]:
                depth[j] = depth[i] + 1
        places: dict[int, float] = {}
        # From the root in the order in which a reader goes through it; without recursion, as chains may be long.
        walk, leaves, stack = [], 0, [self.root]
        while stack:
            i = stack.pop()
            walk.append(i)
            stack.extend(reversed(children[i]))
            if not children[i]:
                places[i] = float(leaves)
                leaves += 1
        for i in reversed(walk):
            if children[i]:
                places[i] = sum(places[j] for j in children[i]) / len(children[i])
        last = max(depth.values())
        xs = [float(depth.get(i, 0)) for i in range(len(self.variables))]
        # Observations stand in one column.
        for i, (_, latent) in enumerate(self.variables):
            if not latent and last > 0:
                xs[i] = float(last)
        ys = [places.get(i, 0.0) for i in range(len(self.variables))]
        edges = [(i, j) for i in walk for j in children[i]]
        return list(zip(xs, ys)), edges

    def label(self, i: int) -> str:
        """A variable's name, with what it explains."""
        name, latent = self.variables[i]
        if latent and name in self.explained:
            return f"{name}  {self.explained[name]:.2f} nats"
        return name

    def weight(self, i: int, j: int) -> float | None:
        """What an edge contributes to the latent at its parent's end, as a share of what that explains."""
        parent, child = self.variables[i][0], self.variables[j][0]
        value = self.contributions.get((parent, child))
        if value is None:
            return None
        return max(0.0, value) / max(self.explained.get(parent, 0.0), value, 1e-9)

    def html(self, title: str) -> str:
        """The tree as a small picture for notebooks."""
        if len(self.variables) < 2 or sum(not latent for _, latent in self.variables) > LEAVES_DRAWN:
            return f"<pre>{escape(title)}</pre>"
        places, edges = self.layout()
        columns = int(max(x for x, _ in places)) + 1
        rows = int(max(y for _, y in places)) + 1
        widest = max(len(self.label(i)) for i in range(len(self.variables)))
        step, line = max(110, 7 * widest + 34), 24
        width, height = step * columns, line * rows + 16
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" role="img" aria-label="the tree" '
            'style="font: 12px sans-serif; max-width: 100%">'
        ]

        def at(i: int) -> tuple[float, float]:
            x, y = places[i]
            return 12 + x * step, 16 + y * line

        for i, j in edges:
            (x1, y1), (x2, y2) = at(i), at(j)
            share = self.weight(i, j)
            thick = 1.5 if share is None else 1 + 4 * share
            middle = x1 + 0.72 * (x2 - x1)
            parts.append(
                f'<path d="M{x1:.0f} {y1:.0f} C{middle:.0f} {y1:.0f} {middle:.0f} {y2:.0f} {x2:.0f} {y2:.0f}" '
                f'fill="none" stroke="#8aa" stroke-width="{thick:.1f}"/>'
            )
        for i, (_, latent) in enumerate(self.variables):
            x, y = at(i)
            mark = (
                f'<circle cx="{x:.0f}" cy="{y:.0f}" r="5" fill="#2a6f97"/>'
                if latent
                else f'<rect x="{x - 4:.0f}" y="{y - 4:.0f}" width="8" height="8" fill="#c77d2e"/>'
            )
            text = escape(self.label(i))
            # A halo keeps the label readable on edges.
            parts.append(
                f'{mark}<text x="{x + 9:.0f}" y="{y + 4:.0f}" fill="currentColor" stroke="white" stroke-width="3" '
                f'stroke-opacity="0.7" paint-order="stroke">{text}</text>'
            )
        parts.append("</svg>")
        note = "<br>one latent z for every step of a sequence" if self.chain else ""
        return f"<div><code>{escape(title)}</code>{note}<br>{''.join(parts)}</div>"
