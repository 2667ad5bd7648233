"""Inference where the data are: batches in, batches out, on engines that cut tables into parts."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from ramp_ml import Chain, Ramp

pa = pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def rows(answers):
    table = pa.table(answers)
    return table.append_column("person", pa.array(np.arange(table.num_rows)))


def test_batches_are_the_whole_row_for_row(fitted, rows):
    whole = fitted.infer(rows, keep=["person"])
    for size in (1, 7, 600, 10_000):
        batches = rows.slice(0, 50 if size == 1 else None).to_batches(max_chunksize=size)
        parts = list(fitted.infer_batches(iter(batches), keep=["person"]))
        assert [p.num_rows for p in parts] == [b.num_rows for b in batches]
        found = pa.Table.from_batches(parts)
        assert found.equals(whole.slice(0, found.num_rows)), size


def test_nothing_is_read_ahead_and_empty_batches_are_left_out(fitted, rows):
    taken = 0

    def batches():
        nonlocal taken
        for batch in [rows.to_batches()[0].slice(0, 0), *rows.to_batches(max_chunksize=100)]:
            taken += 1
            yield batch

    answers = fitted.infer_batches(batches())
    assert next(answers).num_rows == 100
    assert taken == 2
    assert sum(batch.num_rows for batch in answers) == 500


def test_sequences_are_refused(walks):
    model = Ramp(Chain(observe=["place"]), iterations=2, verbose=False).fit(walks)
    with pytest.raises(ValueError, match="whole sequences"):
        next(model.infer_batches([]))


def test_dask_on_two_worker_processes(fitted, rows):
    dd = pytest.importorskip("dask.dataframe")
    distributed = pytest.importorskip("distributed")
    frame = rows.to_pandas()
    expected = fitted.infer(frame, keep=["person"])
    model = pickle.loads(pickle.dumps(fitted))
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
    ):
        # From the book, "From a laptop to a cluster".
        parts = dd.from_pandas(frame, npartitions=5)
        latents = parts.map_partitions(
            lambda part, model: model.infer(part, keep=["person"]), model, meta=expected.iloc[:0]
        )
        found = latents.compute()
    assert found.equals(expected)
