"""Dimensions of a table by exploratory graph analysis, and how far they are from the true tree.

The graph is a sparse matrix of partial correlations (graphical lasso, its penalty chosen by the extended BIC with gamma 0.5, as in qgraph and EGAnet), the
dimensions its communities by walktrap. A table is of one dimension where walktrap, given four unrelated columns with correlations of a single factor beside it, leaves the
table's own columns together, as EGAnet has it. Dimensions have no tree above them: their distance counts the sides of every true edge that no dimension is, and the
dimensions that no edge divides off.

python dimensions.py FOLDER      every .csv with a .nwk beside it; prints one line of JSON each
Needs: requirements-graphs.txt.
"""
import csv, json, pathlib, re, sys, warnings

import igraph
import numpy as np
from sklearn.covariance import graphical_lasso

PENALTIES = 30
GAMMA = 0.5


def correlations(columns):
    """Of normal scores of ranks, over the rows that both columns have; then to the nearest matrix that is positive definite."""
    count = columns.shape[1]
    result = np.eye(count)
    for a in range(count):
        for b in range(a):
            both = ~np.isnan(columns[:, a]) & ~np.isnan(columns[:, b])
            ranks = [np.argsort(np.argsort(columns[both, c])).astype(float) for c in (a, b)]
            result[a, b] = result[b, a] = np.corrcoef(*ranks)[0, 1]
    values, vectors = np.linalg.eigh(result)
    result = vectors @ np.diag(np.maximum(values, 1e-4)) @ vectors.T
    scale = np.sqrt(np.diag(result))
    return result / np.outer(scale, scale)


def partial_correlations(matrix, rows):
    """The graph of least extended BIC."""
    count = len(matrix)
    largest = np.abs(matrix - np.eye(count)).max()
    best, graph = np.inf, np.zeros_like(matrix)
    for penalty in np.geomspace(largest, 0.01 * largest, PENALTIES):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                _, precision = graphical_lasso(matrix, penalty, max_iter=200)
        except FloatingPointError:
            continue
        edges = np.count_nonzero(np.triu(np.abs(precision) > 1e-8, 1))
        likelihood = rows / 2 * (np.linalg.slogdet(precision)[1] - np.trace(matrix @ precision))
        bic = -2 * likelihood + edges * np.log(rows) + 4 * GAMMA * edges * np.log(count)
        if bic < best:
            scale = np.sqrt(np.diag(precision))
            best, graph = bic, -precision / np.outer(scale, scale)
    np.fill_diagonal(graph, 0.0)
    return graph


def communities(graph):
    weights = np.abs(graph)
    network = igraph.Graph.Weighted_Adjacency(np.where(weights > 1e-8, weights, 0.0).tolist(), mode="undirected", loops=False)
    if network.ecount() == 0:
        return [{i} for i in range(len(graph))]
    return [set(c) for c in network.community_walktrap(weights="weight", steps=4).as_clustering()]


def dimensions(columns):
    matrix, rows = correlations(columns), len(columns)
    count = len(matrix)
    # Four more columns with loadings of 0.7 on a factor of their own: would the table's columns stay together beside them?
    beside = np.eye(count + 4)
    beside[:count, :count] = matrix
    beside[count:, count:] = 0.49 + 0.51 * np.eye(4)
    alone = communities(partial_correlations(beside, rows))
    if sum(1 for c in alone if any(i < count for i in c)) == 1:
        return [set(range(count))]
    return communities(partial_correlations(matrix, rows))


def splits(newick):
    """The sides of inner edges without the first leaf, and the leaves."""
    leaves, sides, open_groups = [], [], []
    for token in re.findall(r"[(),;]|[^(),;\s]+", newick):
        if token == "(":
            open_groups.append(set())
        elif token == ")":
            closed = open_groups.pop()
            sides.append(closed)
            if open_groups:
                open_groups[-1] |= closed
        elif re.fullmatch(r"x\d+", token):
            leaves.append(token)
            open_groups[-1].add(token)
    return {s for s in (side(group, leaves) for group in sides) if s}, leaves


def side(group, leaves):
    """A division of the leaves by its part without the first; none where a part has fewer than two."""
    group = set(group) if leaves[0] not in group else set(leaves) - set(group)
    return frozenset(group) if 2 <= len(group) <= len(leaves) - 2 else None


def main():
    for table in sorted(pathlib.Path(sys.argv[1]).glob("*.csv")):
        true, leaves = splits(table.with_suffix(".nwk").read_text())
        with open(table, newline="") as file:
            names, *rows = csv.reader(file)
        columns = np.array([[float(cell) if cell else np.nan for cell in row] for row in rows])
        found = dimensions(columns)
        divisions = {s for s in (side({names[i] for i in group}, leaves) for group in found) if s}
        print(json.dumps({"name": table.stem, "dimensions": len(found), "distance": len(true ^ divisions)}), flush=True)


main()
