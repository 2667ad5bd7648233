"""Pictures of a fit with matplotlib: from the numbers that the report shows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._errors import MissingColumnError
from ._tree import Drawing

BLUE, ORANGE, GREY = "#2a6f97", "#c77d2e", "#8aa"


def _axes(ax: Any, **size: Any) -> Any:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained", **size)[1]


def tree(drawing: Drawing, ax: Any) -> Any:
    """The tree, root to the left."""
    places, edges = drawing.layout()
    leaves = max(y for _, y in places) + 1
    ax = _axes(ax, figsize=(7, max(2.0, 0.32 * leaves)))
    for i, j in edges:
        share = drawing.weight(i, j)
        ax.plot(
            [places[i][0], places[j][0]],
            [places[i][1], places[j][1]],
            color=GREY,
            linewidth=1.5 if share is None else 1 + 4 * share,
            zorder=1,
        )
    for i, (name, latent) in enumerate(drawing.variables):
        x, y = places[i]
        ax.plot(x, y, "o" if latent else "s", color=BLUE if latent else ORANGE, markersize=7, zorder=2)
        above = latent and bool(edges)
        ax.annotate(
            drawing.label(i),
            (x, y),
            xytext=(0, 8) if above else (9, 0),
            textcoords="offset points",
            ha="center" if above else "left",
            va="bottom" if above else "center",
            zorder=3,
            bbox={"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.7},
        )
    ax.invert_yaxis()
    ax.margins(x=0.22, y=0.12)
    ax.set_axis_off()
    return ax


def _number(value: Any) -> float:
    return np.nan if value is None else float(value)


def training(report: dict[str, Any], ax: Any) -> Any:
    """The free energy over the iterations."""
    points = report["training"]
    ax = _axes(ax, figsize=(6, 3.4))
    learned = [(p["iteration"], p["free_energy"]) for p in points if p["free_energy"] is not None]
    if learned:
        ax.plot(*zip(*learned), color=BLUE, label="training")
    held = [(p["iteration"], _number(p["held_out"])) for p in points if p["held_out"] is not None]
    if held:
        ax.plot(*zip(*held), color=ORANGE, marker=".", label="cross-validation" if report.get("folds") else "validation")
        ax.legend(frameon=False)
    ax.set_xlabel("iteration")
    ax.set_ylabel("free energy, nats")
    return ax


def items(report: dict[str, Any], ax: Any) -> Any:
    """The mean of the latent by the answers to each item."""
    curves = report["items"]
    if not curves:
        raise ValueError("no item of this fit has an order: items are numbers and ordered levels")
    ax = _axes(ax, figsize=(6, 4))
    for curve in curves:
        means = [_number(mean) for mean in curve["means"]]
        places = np.linspace(0, 1, len(means))
        ax.plot(places, means, marker=".", label=f"{curve['name']} → {curve['latent']}")
    ax.set_xticks([0, 1], ["lowest answer", "highest answer"])
    ax.set_ylabel("mean of the latent")
    if len(curves) <= 20:
        ax.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))
    return ax


def _coordinates(report: dict[str, Any]) -> dict[str, Any]:
    return {c["label"]: c for latent in report["latents"] for c in latent["coordinates"]}


def latents(report: dict[str, Any], x: str | None, y: str | None, color: str | None, ax: Any) -> Any:
    """Two coordinates of some rows."""
    known = _coordinates(report)

    def find(name: str | None, usual: int) -> tuple[str, Any] | None:
        if name is None:
            names = list(known)
            return (names[usual], known[names[usual]]) if usual < len(names) else None
        if name not in known:
            raise MissingColumnError(f"there is no coordinate `{name}`; there are {', '.join(known)}")
        return name, known[name]

    first, second = find(x, 0), find(y, 1)
    if first is None:
        raise ValueError("the report has no coordinates to draw")
    ax = _axes(ax, figsize=(5.5, 4.5))
    if second is None:
        ax.hist(np.array([_number(v) for v in first[1]["mean"]]), bins=40, color=BLUE)
        ax.set_xlabel(first[0])
        ax.set_ylabel("rows")
        return ax
    xs = np.array([_number(v) for v in first[1]["mean"]])
    ys = np.array([_number(v) for v in second[1]["mean"]])
    if color is None:
        ax.scatter(xs, ys, s=6, alpha=0.6, color=BLUE)
    else:
        _coloured(ax, xs, ys, color, report)
    ax.set_xlabel(first[0])
    ax.set_ylabel(second[0])
    return ax


def _coloured(ax: Any, xs: Any, ys: Any, color: str, report: dict[str, Any]) -> None:
    columns = {column["name"]: column["values"] for column in report["columns"]}
    if color not in columns:
        raise MissingColumnError(f"there is no column `{color}`; there are {', '.join(columns)}")
    values = columns[color]
    if "numbers" in values:
        numbers = np.array([_number(v) for v in values["numbers"]])
        drawn = ax.scatter(xs, ys, s=6, c=numbers, cmap="viridis")
        ax.figure.colorbar(drawn, ax=ax, label=color)
        return
    codes = values["levels"]["codes"]
    for code, level in enumerate(values["levels"]["levels"]):
        rows = np.array([c == code for c in codes])
        ax.scatter(xs[rows], ys[rows], s=6, label=level)
    ax.legend(title=color, frameon=False, markerscale=2)


def forecast(report: dict[str, Any], name: str | None, ax: Any) -> Any:
    """A sequence and what is foretold of it."""
    found = report["over_time"]
    if found is None:
        raise ValueError("only sequences have steps to come; the tree of this fit is no chain in a table")
    bands = {band["label"]: band for band in found["bands"]}
    if name is None:
        observed = [label for label, band in bands.items() if band["observed"]]
        name = (observed or list(bands))[0]
    if name not in bands:
        raise MissingColumnError(f"`{name}` is not over time; there are {', '.join(bands)}")
    band = bands[name]

    def line(part: str) -> Any:
        return np.array([_number(v) for v in band[part]])

    ax = _axes(ax, figsize=(7.5, 3.4))
    steps = np.arange(len(band["middle"]))
    if band["observed"]:
        ax.plot(steps, line("observed"), color=GREY, linewidth=1, marker=".", markersize=3, label="observed")
    ax.fill_between(steps, line("low"), line("high"), color=BLUE, alpha=0.2, linewidth=0)
    share = "± 1 sd" if not band["observed"] else f"{100 * found['interval']:.0f} % interval"
    ax.plot(steps, line("middle"), color=BLUE, label=f"expected, {share}")
    ax.axvline(found["steps"] - 0.5, color=ORANGE, linestyle=":", linewidth=1)
    times = found["times"]
    marks = np.unique(np.linspace(0, len(times) - 1, 6).astype(int))
    ax.set_xticks(marks, [times[i] for i in marks])
    ax.set_ylabel(name)
    if found["name"]:
        ax.set_title(str(found["name"]), fontsize="medium")
    ax.legend(frameon=False, fontsize="small")
    return ax
