#!/usr/bin/env python3
"""Made-up questionnaires with a second hidden trait: how extremely people answer.

Eight items of five answers hang on one trait; people differ in how far from the middle they answer, whatever the item.
Scores should follow the trait. Each questionnaire is fitted with the defaults (ordered levels, monotone), with
`monotone = false`, and with `dim = 2`, where the first dimension is monotone and the second is free for how people answer; the first is the score. The same without extreme answering is what can be reached at all. A third kind of questionnaire has items
that truly are not monotone ("about right" in the middle): there the rule costs. Beside it, the
sum of the items. Nothing is tuned on these.

Real answers have no trait to compare with, but bfi's 25 items of five traits tell how extremely a person answers *elsewhere*: a score of a trait should follow the sum of its own items and not
how far answers to the other traits' items are from the middle. bfi comes out of a package that bench/real/run installs; the rest needs the standard library only. The tables go to
bench/real/ITEMS.md, all numbers to bench/real/items.json.

example:
  bench/real/items.py --ramp target/release/ramp --part made
  bench/real/.venv/bin/python bench/real/items.py --part real
"""
import argparse
import csv
import json
import math
import pathlib
import random
import re
import resource
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ITEMS = 8


def made(rows, extreme, folded, seed):
    """Answers from 1 to 5, and the trait behind them."""
    rng = random.Random(seed)
    answers, traits = [], []
    for _ in range(rows):
        trait = rng.gauss(0, 1)
        spread = math.exp(extreme * rng.gauss(0, 1))
        row = []
        for item in range(ITEMS):
            way = -1 if item % 4 == 3 else 1
            signal = way * trait
            if folded and item % 2:
                signal = 1.2 * abs(trait) - 0.9
            x = spread * (0.8 * signal + 0.7 * rng.gauss(0, 1))
            row.append(1 + sum(x > cut for cut in (-1.2, -0.4, 0.4, 1.2)))
        answers.append(row)
        traits.append(trait)
    return answers, traits


def attainable(answers, extreme, folded):
    """The trait's posterior means by the very process that made the answers: no score follows the trait more closely."""
    places = [-3 + 0.15 * i for i in range(41)]
    spreads = [-2.5 + 0.25 * i for i in range(21)] if extreme else [0.0]
    normal = lambda x: 0.5 * math.erfc(-x / math.sqrt(2))
    cuts = (-math.inf, -1.2, -0.4, 0.4, 1.2, math.inf)
    grid = []
    for trait in places:
        for s in spreads:
            spread = math.exp(extreme * s)
            chances = []
            for item in range(ITEMS):
                signal = (-1 if item % 4 == 3 else 1) * trait
                if folded and item % 2:
                    signal = 1.2 * abs(trait) - 0.9
                below = [normal((cut / spread - 0.8 * signal) / 0.7) for cut in cuts]
                chances.append([math.log(max(b - a, 1e-300)) for a, b in zip(below, below[1:])])
            grid.append((trait, -(trait**2 + s**2) / 2, chances))
    known = {}
    means = []
    for row in map(tuple, answers):
        if row not in known:
            logs = [prior + sum(c[a - 1] for c, a in zip(chances, row)) for _, prior, chances in grid]
            most = max(logs)
            weights = [math.exp(x - most) for x in logs]
            known[row] = sum(w * g[0] for w, g in zip(weights, grid)) / sum(weights)
        means.append(known[row])
    return means


def correlation(a, b):
    n = len(a)
    ma, mb = sum(a) / n, sum(b) / n
    cov = sum((x - ma) * (y - mb) for x, y in zip(a, b))
    return cov / math.sqrt(sum((x - ma) ** 2 for x in a) * sum((y - mb) ** 2 for y in b))


SETTINGS = {"default": "", "`monotone = false`": "[networks]\nmonotone = false\n", "`dim = 2`": "[latents]\ndim = 2\n"}


def fitted(ramp, folder, names, answers, newick, settings, seed):
    """What a fit says, its processor time, and what `infer` writes."""
    with open(folder / "data.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(answers)
    text = f'version = 1\n[data]\nfile = "data.csv"\n[tree]\nnewick = "{newick}"\n{settings}[train]\nseed = {seed}\n'
    (folder / "model.toml").write_text(text)
    run = lambda *words: subprocess.run([ramp, *words, "--threads", "1"], cwd=folder, check=True, capture_output=True, text=True)
    spent = lambda: resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    before = spent()
    fit = run("fit", "model.toml", "--out", "run", "--overwrite")
    cpu = spent() - before
    run("infer", "run", "--data", "data.csv", "--out", "scores.csv")
    with open(folder / "scores.csv") as file:
        return fit.stdout + fit.stderr, cpu, list(csv.DictReader(file))


def scores(ramp, folder, answers, settings, seed):
    names = [f"q{i + 1}" for i in range(ITEMS)]
    said, _, table = fitted(ramp, folder, names, answers, f"({','.join(names)})trait;", settings, seed)
    column = next(name for name in table[0] if name.startswith("trait") and "mean" in name)
    return [float(row[column]) for row in table], "how extremely they" in said


# Items of bfi that are worded the other way round.
AGAINST = {"A1", "C4", "C5", "E1", "E2", "O2", "O5"}
TRAITS = {"agreeable": "A", "conscientious": "C", "extravert": "E", "neurotic": "N", "open": "O"}
REAL_SETTINGS = {"default": "", "`dim = 2` of each trait": "[latents]\n" + "".join(f"{t}.dim = 2\n" for t in TRAITS)}
TOTAL = re.compile(r"in all ([0-9.]+) ± ([0-9.]+) nats a row")


def real(ramp):
    """bfi's traits with one dimension each and with two."""
    import sets

    table, newick = sets.bfi()
    names = list(table.columns)
    answers = [[None if x != x else int(x) for x in row] for row in table.to_numpy()]
    cells = [["" if a is None else a for a in row] for row in answers]

    def mean(row, items, of):
        known = [of(names[i], row[i]) for i in items if row[i] is not None]
        return sum(known) / len(known) if known else None

    def along(scores, others):
        both = [(a, b) for a, b in zip(scores, others) if b is not None]
        return correlation(*zip(*both))

    rows = []
    for name, settings in REAL_SETTINGS.items():
        with tempfile.TemporaryDirectory() as folder:
            said, cpu, latents = fitted(ramp, pathlib.Path(folder), names, cells, newick, settings, 0)
        nats, error = map(float, TOTAL.search(said).groups())
        for trait, letter in TRAITS.items():
            column = next(c for c in latents[0] if c.startswith(trait) and "mean" in c)
            score = [float(row[column]) for row in latents]
            own = [i for i, n in enumerate(names) if n[0] == letter]
            other = [i for i, n in enumerate(names) if n[0] != letter]
            total = [mean(row, own, lambda n, a: 7 - a if n in AGAINST else a) for row in answers]
            edge = [mean(row, other, lambda n, a: abs(a - 3.5)) for row in answers]
            rows.append({"kind": "bfi", "settings": name, "trait": trait, "sum": along(score, total), "elsewhere": along(score, edge), "nats": nats, "nats_error": error, "cpu": cpu})
            print(rows[-1], flush=True)
    return rows


def real_lines(found):
    rows = [r for r in found if r["kind"] == "bfi"]
    if not rows:
        return []
    lines = ["", "## Real answers", "", "bfi, 2,800 people, 25 items of five traits: correlations of each trait's score (with two dimensions the first) with the mean of its items, those that are worded the other way round turned, and with how far from the middle the person answers the items of the *other* traits. In all: nats a held-out row more than independent columns.", "",
        "| settings | " + " | ".join(f"{t}: own items" for t in TRAITS) + " | " + " | ".join(f"{t}: extremes elsewhere" for t in TRAITS) + " | in all | CPU of the fit |", "|---|" + "---:|" * (2 * len(TRAITS) + 2)]
    for name in REAL_SETTINGS:
        own = {r["trait"]: r for r in rows if r["settings"] == name}
        first = own[next(iter(TRAITS))]
        cells = [f"{own[t]['sum']:.3f}" for t in TRAITS] + [f"{own[t]['elsewhere']:+.3f}" for t in TRAITS]
        lines.append(f"| {name} | {' | '.join(cells)} | {first['nats']:.2f} ± {first['nats_error']:.2f} | {first['cpu']:.0f} s |")
    mean = lambda name, key: sum(abs(r[key]) for r in rows if r["settings"] == name) / len(TRAITS)
    cpu = lambda name: next(r["cpu"] for r in rows if r["settings"] == name)
    one, two = REAL_SETTINGS
    lines += ["", f"So a second dimension pays on real answers too: on average scores follow their items by {mean(two, 'sum'):.3f} (one dimension {mean(one, 'sum'):.3f}) and extremes elsewhere by {mean(two, 'elsewhere'):.3f} ({mean(one, 'elsewhere'):.3f}), neglecting signs. "
        f"`fit` advises it and does not take it by itself: it takes {cpu(two) / cpu(one):.2f} times the processor time ({cpu(two):.0f} s; asked of this table: at most 40), and a trait's column would be `.mean1` or `.mean` as the data have it."]
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ramp", default="target/release/ramp", type=lambda p: str(pathlib.Path(p).resolve()))
    parser.add_argument("--rows", default=2000, type=int)
    parser.add_argument("--seeds", default=3, type=int)
    parser.add_argument("--part", choices=["made", "real"], help="made-up questionnaires or bfi alone; what is stored of the other stays (default both)")
    parser.add_argument("--tables-only", action="store_true", help="measure nothing: write the table of what is stored")
    chosen = parser.parse_args()
    kinds = {"no extreme answering": (0.0, False), "extreme answering": (0.8, False), "half of the items not monotone": (0.0, True)}
    store = HERE / "items.json"
    stored = json.loads(store.read_text()) if store.exists() else []
    parts = [] if chosen.tables_only else [chosen.part] if chosen.part else ["made", "real"]
    found = [r for r in stored if ("real" if r["kind"] == "bfi" else "made") not in parts]
    if "real" in parts:
        found += real(chosen.ramp)
    for kind, (extreme, folded) in kinds.items() if "made" in parts else []:
        for name, settings in SETTINGS.items():
            for seed in range(chosen.seeds):
                answers, traits = made(chosen.rows, extreme, folded, seed)
                with tempfile.TemporaryDirectory() as folder:
                    got, advised = scores(chosen.ramp, pathlib.Path(folder), answers, settings, seed)
                # Every fourth item is worded the other way round; the sum knows it, RAMP is not told.
                total = [sum(-a if item % 4 == 3 else a for item, a in enumerate(row)) for row in answers]
                edge = [sum(abs(a - 3) for a in row) for row in answers]
                row = {"kind": kind, "settings": name, "seed": seed, "advised": advised, "trait": abs(correlation(got, traits)), "extreme": abs(correlation(got, edge)), "sum": abs(correlation(total, traits)), "attainable": abs(correlation(attainable(answers, extreme, folded), traits))}
                found.append(row)
                print(row, flush=True)
    lines = ["# Items with a second hidden trait", "", "| questionnaire | settings | correlation with the trait | with extreme answers | sum of the items with the trait | attainable | `dim = 2` advised |", "|---|---|---:|---:|---:|---:|---:|"]
    for kind in kinds:
        for name in SETTINGS:
            rows = [r for r in found if r["kind"] == kind and r["settings"] == name]
            mean = lambda key: sum(r[key] for r in rows) / len(rows)
            lines.append(f"| {kind} | {name} | {mean('trait'):.3f} | {mean('extreme'):.3f} | {mean('sum'):.3f} | {mean('attainable'):.3f} | {sum(r['advised'] for r in rows)} of {len(rows)} |")
    best = lambda kind, name, key="trait": sum(r[key] for r in found if r["kind"] == kind and r["settings"] == name) / chosen.seeds
    ratio = lambda name, to: best("extreme answering", name) / best("no extreme answering", to)
    limit = lambda kind: best(kind, "default", "attainable")
    bound = limit("extreme answering") / limit("no extreme answering")
    lines += ["", f"Attainable is the correlation of the exact posterior mean under the process that made the answers: with extreme answering {bound:.3f} of what it is without it, so no method reaches more of what it reaches without it unless it is worse there."]
    lines += ["", f"With extreme answering, scores reach {ratio('default', 'default'):.3f} of what they reach without it by default, and with `dim = 2`, which the fit advises there, {ratio('`dim = 2`', '`dim = 2`'):.4f} of what `dim = 2` reaches without it, {ratio('`dim = 2`', 'default'):.4f} of what the default reaches (asked: 0.95). {chosen.rows} rows, {ITEMS} items of five answers, means over {chosen.seeds} seeds; `bench/real/items.py`."]
    lines += real_lines(found)
    (HERE / "ITEMS.md").write_text("\n".join(lines) + "\n")
    store.write_text(json.dumps(found, indent=1) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
