"""Peers of scores and pictures: a second-order factor analysis, and principal components of digits' quadrants."""
import numpy as np
import pandas as pd

import sets
from imputation import ramp


def correlations_with_factor_analysis(command, folder, extra=""):
    """Scores of Holzinger's pupils by RAMP, beside those of a second-order confirmatory factor analysis of the same tree (semopy)."""
    import semopy

    table, newick = sets.holzinger()
    table.to_csv(folder / "learned.csv", index=False)
    (folder / "model.toml").write_text(f'version = 1\n[data]\nfile = "learned.csv"\n[tree]\nnewick = "{newick}"\n{extra}')
    said, cpu = ramp(command, "fit", "model.toml", "--out", "run", "--overwrite", "--threads", 1, folder=folder)
    ramp(command, "infer", "run", "--data", "learned.csv", "--out", "scores.csv", "--threads", 1, folder=folder)
    ours = pd.read_csv(folder / "scores.csv")
    lines = [f"{name} =~ {' + '.join(items)}" for name, items in sets.HOLZINGER_FACTORS.items()]
    lines.append(f"general =~ {' + '.join(sets.HOLZINGER_FACTORS)}")
    model = semopy.Model("\n".join(lines))
    standard = (table - table.mean()) / table.std()
    model.fit(standard)
    theirs = model.predict_factors(standard)
    found = {}
    for name in [*sets.HOLZINGER_FACTORS, "general"]:
        found[name] = float(abs(np.corrcoef(ours[f"{name}.mean"], theirs[name])[0, 1]))
    return {"correlations": found, "mean": float(np.mean(list(found.values()))), "cpu": cpu, "said": said}


def shared_factors(views, count, ridge=1e-3, rounds=300):
    """Scores of the linear model of what views share: a few factors, and noise that may do anything within a view, by expectation and maximisation. What lies within one view is no
    reason for a factor, as it is none for a latent that views hang on; so this says how much of the accuracy is in what views share, for a linear reader."""
    pixels = np.hstack([v - v.mean(0) for v in views])
    size, ends = pixels.shape[1], np.cumsum([0] + [v.shape[1] for v in views])
    within = np.zeros((size, size))
    for a, b in zip(ends, ends[1:]):
        within[a:b, a:b] = 1
    covariance = pixels.T @ pixels / len(pixels) + ridge * np.eye(size)
    loadings, noise = np.random.default_rng(0).normal(0, 0.1, (size, count)), covariance * within

    def reader():
        weighed = np.linalg.solve(noise, loadings).T
        spread = np.linalg.inv(np.eye(count) + weighed @ loadings)
        return spread, spread @ weighed

    for _ in range(rounds):
        spread, read = reader()
        with_factors = covariance @ read.T
        loadings = with_factors @ np.linalg.inv(spread + read @ with_factors)
        noise = (covariance - loadings @ with_factors.T) * within
        noise = (noise + noise.T) / 2 + 1e-6 * np.eye(size)
    return pixels @ reader()[1].T


def neighbours_of_digits(command, folder, extra=""):
    """Digits cut into quadrants under one latent of eight numbers: how often the nearest of other digits is the same digit."""
    from sklearn.datasets import load_digits
    from sklearn.decomposition import PCA, FactorAnalysis
    from sklearn.model_selection import cross_val_score
    from sklearn.neighbors import KNeighborsClassifier

    pixels, labels = load_digits(return_X_y=True)
    images = pixels.reshape(-1, 8, 8) / 16.0
    quadrants = {f"q{2 * r + c}": images[:, 4 * r : 4 * r + 4, 4 * c : 4 * c + 4] for r in range(2) for c in range(2)}
    np.savez(folder / "digits.npz", **{k: np.round(255 * v).astype(np.uint8) for k, v in quadrants.items()})
    kinds = "".join(f'[observations.{q}]\nkind = "image"\n' for q in quadrants)
    (folder / "model.toml").write_text(
        f'version = 1\n[data]\nfile = "digits.npz"\n[tree]\nnewick = "({",".join(quadrants)})digit;"\n[latents]\ndim = 8\n{kinds}{extra}'
    )
    said, cpu = ramp(command, "fit", "model.toml", "--out", "run", "--overwrite", "--threads", 1, folder=folder)
    ramp(command, "infer", "run", "--data", "digits.npz", "--out", "scores.csv", "--threads", 1, folder=folder)
    table = pd.read_csv(folder / "scores.csv")
    ours = table[[c for c in table.columns if c.startswith("digit.mean")]].to_numpy()
    accuracy = lambda x: float(cross_val_score(KNeighborsClassifier(1), x, labels, cv=10).mean())
    flat = images.reshape(len(images), -1)
    return {
        "ramp": accuracy(ours),
        "pca": accuracy(PCA(8).fit_transform(flat)),
        "factor analysis": accuracy(FactorAnalysis(8).fit_transform(flat)),
        "shared factors": accuracy(shared_factors([v.reshape(len(v), -1) for v in quadrants.values()], 8)),
        "cpu": cpu,
        "said": said,
    }
