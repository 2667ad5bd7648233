"""Every cell of rows that nobody learned from, foretold from the rest of its row: by RAMP and by its peers.

A fifth of the rows is set apart; of small tables, every fifth in turn. Each column of numbers in turn is emptied in all of them and filled from the others: by `ramp impute`
with default settings, by ridge regression, a random forest and 30 nearest neighbours, all fitted to the other four fifths.
Peers see standardised numbers, one-hot categories, and the mean of the column where a value is missing.
"""
import functools
import math
import resource
import subprocess

import numpy as np
import pandas as pd

DRAWS = 50
NEIGHBOURS = 30
# A fifth of fewer rows tells too little by itself.
SMALL = 1000


def ramp(command, *words, folder):
    """Runs the command; returns what it printed and its CPU seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([command, *map(str, words)], cwd=folder, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"bench/real: ramp {' '.join(map(str, words))}: {done.stderr}")
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def write_model(command, folder, newick, extra=""):
    if newick is None:
        ramp(command, "init", "learned.csv", "--out", "model.toml", "--overwrite", folder=folder)
        if extra:
            (folder / "model.toml").write_text((folder / "model.toml").read_text() + extra)
        return
    (folder / "model.toml").write_text(f'version = 1\n[data]\nfile = "learned.csv"\n[tree]\nnewick = "{newick}"\n{extra}')


def crps_of_draws(draws, truth):
    """The fair continuous ranked probability score of an ensemble, row by row."""
    draws = np.sort(draws, axis=1)
    n = draws.shape[1]
    to_truth = np.abs(draws - truth[:, None]).mean(axis=1)
    ranks = 2 * np.arange(1, n + 1) - n - 1
    between = (draws * ranks).sum(axis=1) / (n * (n - 1))
    return to_truth - between


def crps_of_normal(mean, sd, truth):
    from scipy.stats import norm

    z = (truth - mean) / sd
    return sd * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / math.sqrt(math.pi))


def encoded(table, learned, target):
    """All columns but one as numbers: standardised, one-hot, the mean where missing."""
    blocks = []
    for name in table.columns:
        if name == target:
            continue
        own, known = table[name], learned[name]
        if pd.api.types.is_numeric_dtype(known):
            mean, sd = known.mean(), known.std() or 1.0
            blocks.append(((own - mean) / sd).fillna(0.0).to_numpy(float)[:, None])
        else:
            levels = sorted(known.dropna().astype(str).unique())
            blocks.append(np.stack([(own.astype(str) == level).to_numpy(float) for level in levels], axis=1))
    return np.hstack(blocks)


def peers(learned, apart, target, seed):
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.linear_model import RidgeCV
    from sklearn.neighbors import KNeighborsRegressor

    known = learned[target].notna().to_numpy()
    x, y = encoded(learned, learned, target)[known], learned[target].to_numpy(float)[known]
    new = encoded(apart, learned, target)
    ridge = RidgeCV(alphas=np.logspace(-2, 4, 25)).fit(x, y)
    forest = RandomForestRegressor(100, min_samples_leaf=5, random_state=seed, n_jobs=1).fit(x, y)
    nearest = KNeighborsRegressor(min(NEIGHBOURS, len(y))).fit(x, y)
    sd = float(np.std(y - ridge.predict(x), ddof=min(x.shape[1] + 1, len(y) - 1)))
    return {"ridge": ridge.predict(new), "forest": forest.predict(new), "knn": nearest.predict(new)}, sd


def judge(command, table, newick, folder, seed=0, extra="", targets=None):
    """One row for every column of numbers, and what a fit took on average. Of a small table every fifth is set apart in turn, of others the last."""
    order = np.random.default_rng(seed).permutation(len(table))
    fifths = [order[len(table) * k // 5 : len(table) * (k + 1) // 5] for k in range(5)]
    parts = [fifth_apart(command, table, fifth, newick, folder, seed, extra, targets) for fifth in (fifths if len(table) < SMALL else fifths[-1:])]
    results = []
    for name in parts[0]["columns"]:
        cells = [part["columns"][name] for part in parts if name in part["columns"]]
        mean = lambda *keys: float(np.concatenate([functools.reduce(lambda found, key: found[key], keys, c) for c in cells]).mean())
        results.append(
            {
                "column": name,
                "n": sum(len(c["covers"]) for c in cells),
                "rmse": {who: math.sqrt(mean("squares", who)) for who in cells[0]["squares"]},
                "crps": {who: mean("crps", who) for who in cells[0]["crps"]},
                "covers": mean("covers"),
            }
        )
    taken = {key: float(np.mean([part[key] for part in parts])) for key in ("cpu", "impute_cpu")}
    return {"columns": results, "fifths": len(parts), "rows": len(table) - len(fifths[-1]), "said": parts[-1]["said"], **taken}


def fifth_apart(command, table, fifth, newick, folder, seed, extra, targets):
    """What RAMP and its peers, fitted to all other rows, say of every cell of these: squared errors, scores and whether intervals cover, column by column."""
    rng = np.random.default_rng([seed, len(fifth), int(fifth[0])])
    apart = table.iloc[np.sort(fifth)].reset_index(drop=True)
    learned = table.drop(table.index[fifth]).reset_index(drop=True)
    learned.to_csv(folder / "learned.csv", index=False)
    write_model(command, folder, newick, extra)
    said, cpu = ramp(command, "fit", "model.toml", "--out", "run", "--overwrite", "--threads", 1, folder=folder)
    numbers = [c for c in table.columns if pd.api.types.is_numeric_dtype(table[c]) and learned[c].nunique() > 2]
    if newick is not None:
        numbers = [c for c in numbers if c in newick]
    numbers = [c for c in numbers if targets is None or c in targets]
    gaps = []
    for name in numbers:
        part = apart.copy()
        part[name] = np.nan
        gaps.append(part[apart[name].notna()])
    pd.concat(gaps).to_csv(folder / "gaps.csv", index=False)
    _, impute_cpu = ramp(command, "impute", "run", "--data", "gaps.csv", "--out", "filled.csv", "--threads", 1, folder=folder)
    ramp(command, "impute", "run", "--data", "gaps.csv", "--out", "draws.csv", "--draws", DRAWS, "--threads", 1, folder=folder)
    filled, draws = pd.read_csv(folder / "filled.csv"), pd.read_csv(folder / "draws.csv")
    columns, at = {}, 0
    for name, part in zip(numbers, gaps):
        n = len(part)
        truth = apart[name].dropna().to_numpy(float)
        ours = filled[name].to_numpy(float)[at : at + n]
        drawn = draws[name].to_numpy(float)[at * DRAWS : (at + n) * DRAWS].reshape(n, DRAWS)
        at += n
        others, sd = peers(learned, apart[apart[name].notna()], name, seed)
        # Values that the level below and above include: discrete answers cannot be cut at exactly a tenth.
        below = (drawn < truth[:, None]).mean(axis=1)
        same = (drawn == truth[:, None]).mean(axis=1)
        place = below + same * rng.random(n)
        guesses = {"ramp": ours, "mean": np.full(n, learned[name].mean()), **others}
        columns[name] = {
            "squares": {who: (guess - truth) ** 2 for who, guess in guesses.items()},
            "crps": {"ramp": crps_of_draws(drawn, truth), "ridge": crps_of_normal(others["ridge"], sd, truth)},
            "covers": (place >= 0.1) & (place <= 0.9),
        }
    return {"columns": columns, "cpu": cpu, "impute_cpu": impute_cpu, "said": said}


def summary(found):
    """Geometric means over columns of ratios, and the mean coverage."""
    columns = found["columns"]
    ratio = lambda f: float(np.exp(np.mean([np.log(f(c)) for c in columns])))
    return {
        "to_ridge": ratio(lambda c: c["rmse"]["ramp"] / c["rmse"]["ridge"]),
        "to_forest": ratio(lambda c: c["rmse"]["ramp"] / c["rmse"]["forest"]),
        "to_knn": ratio(lambda c: c["rmse"]["ramp"] / c["rmse"]["knn"]),
        "to_mean": ratio(lambda c: c["rmse"]["ramp"] / c["rmse"]["mean"]),
        "crps_to_ridge": ratio(lambda c: c["crps"]["ramp"] / c["crps"]["ridge"]),
        "covers": float(np.mean([c["covers"] for c in columns])),
        "cpu": found["cpu"],
        "impute_cpu": found["impute_cpu"],
    }
