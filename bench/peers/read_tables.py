"""Reads a table into memory with pyarrow or polars, as each does by default, on so many threads.

python read_tables.py --library polars --file table.parquet --threads 2
Needs: pyarrow, polars. Prints one line of JSON; the sum of all numbers shows that both sides read the same.
"""
import argparse, json, os, resource, time

ap = argparse.ArgumentParser()
ap.add_argument("--library", choices=["pyarrow", "polars"], required=True)
ap.add_argument("--file", required=True)
ap.add_argument("--threads", type=int, default=2)
a = ap.parse_args()
parquet = a.file.endswith(".parquet")
if a.library == "polars":
    os.environ["POLARS_MAX_THREADS"] = str(a.threads)
    import polars as pl

    start = time.perf_counter()
    table = pl.read_parquet(a.file) if parquet else pl.read_csv(a.file)
    ms = (time.perf_counter() - start) * 1e3
    rows, version = table.height, pl.__version__
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    total = sum(table[name].sum() for name in table.columns if name != "level")
else:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv
    import pyarrow.parquet

    pa.set_cpu_count(a.threads)
    pa.set_io_thread_count(a.threads)
    start = time.perf_counter()
    table = pa.parquet.read_table(a.file) if parquet else pa.csv.read_csv(a.file)
    ms = (time.perf_counter() - start) * 1e3
    rows, version = table.num_rows, pa.__version__
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    total = sum(pc.sum(table[name]).as_py() for name in table.column_names if name != "level")
print(json.dumps({"ms": round(ms, 1), "peak_mb": round(peak, 1), "rows": rows, "sum": total, a.library: version}))
