"""Posteriors of a table of 14 columns by one engine: the recipes of docs/src/scale.md, run for real.

python engines.py make --folder F --rows 10000000      the table in 32 Parquet files, as one Arrow stream, and a run fitted to some of it
python engines.py ray --folder F --rows 10000000 --cores 2
Needs: requirements-engines.txt. Prints one line of JSON; what was written is compared with what the command writes of the same rows.
"""
import argparse, json, os, pathlib, resource, subprocess, time

ap = argparse.ArgumentParser()
ap.add_argument("way", choices=["make", "memory", "command", "stream", "dask", "ray", "spark"])
ap.add_argument("--folder", type=pathlib.Path, required=True)
ap.add_argument("--rows", type=int, required=True)
ap.add_argument("--cores", type=int, default=2)
ap.add_argument("--command")
a = ap.parse_args()
a.folder = a.folder.resolve()
TREE = "((a1,a2,a3,a4,a5,a6,a7)a,(b1,b2,b3,b4,b5,b6,b7)b)c;"
PARTS, RUN, STREAM, COMPARED = a.folder / "parts", a.folder / "run", a.folder / "table.arrow", 1000
# Rows that are held in memory at once where a table is: more would measure the machine's memory.
HELD = 1_000_000
for name in ("OMP_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ.setdefault(name, str(a.cores))


def model():
    from ramp_ml import Ramp

    return Ramp.load(str(RUN))


def chunk(rng, first, rows):
    import numpy as np
    import pyarrow as pa

    common = rng.normal(size=rows)
    columns = {"person": pa.array(np.arange(first, first + rows))}
    for half in "ab":
        hidden = common + rng.normal(size=rows)
        for i in range(1, 8):
            values = hidden + rng.normal(size=rows)
            values[rng.random(rows) < 0.05] = np.nan
            columns[f"{half}{i}"] = pa.array(values, from_pandas=True)
    return pa.table(columns)


def make():
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq
    from ramp_ml import Ramp

    rng, files = np.random.default_rng(0), 32
    PARTS.mkdir()
    writer, first = None, 0
    for i in range(files):
        rows = a.rows * (i + 1) // files - first
        table = chunk(rng, first, rows)
        pq.write_table(table, PARTS / f"part-{i:02}.parquet")
        if writer is None:
            Ramp(TREE, iterations=50, verbose=False).fit(table.slice(0, 5000)).save(str(RUN), overwrite=True)
            pq.write_table(table.slice(0, COMPARED), a.folder / "some.parquet")
            writer = pa.ipc.new_stream(STREAM, table.schema)
        writer.write_table(table, max_chunksize=1 << 16)
        first += rows
    writer.close()
    return {"rows": a.rows}


def in_memory():
    """The rate of `infer` on a table that is in memory: the best of three calls after a first one, since the disk may still be writing the table."""
    import pyarrow.parquet as pq

    files, tables, rows = sorted(PARTS.iterdir()), [], 0
    for file in files:
        tables.append(pq.read_table(file))
        rows += tables[-1].num_rows
        if rows >= HELD:
            break
    import pyarrow as pa

    table, fitted = pa.concat_tables(tables), model()
    fitted.infer(table.slice(0, 1000))
    took = []
    for _ in range(3):
        begun = time.perf_counter()
        out = fitted.infer(table, keep=["person"])
        took.append(time.perf_counter() - begun)
    return {"seconds": min(took), "rows": table.num_rows}, out


def command(words, **pipes):
    begun = time.perf_counter()
    subprocess.run([a.command, "--threads", str(a.cores), "infer", str(RUN), *words], check=True, **pipes)
    return time.perf_counter() - begun


def by_command():
    import pyarrow as pa

    out = a.folder / "command.arrow"
    took = command(["--data", str(STREAM), "--out", str(out), "--keep", "person"], stdout=subprocess.DEVNULL)
    return {"seconds": took, "rows": a.rows}, pa.ipc.open_file(pa.memory_map(str(out))).read_all()


def by_stream():
    import pyarrow as pa

    out = a.folder / "stream.arrow"
    with open(STREAM, "rb") as table, open(out, "wb") as written:
        # Through pipes on both sides, as in a pipeline.
        into = subprocess.Popen(["cat"], stdin=table, stdout=subprocess.PIPE)
        through = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=written)
        took = command(["-", "--keep", "person"], stdin=into.stdout, stdout=through.stdin)
        through.stdin.close()
        into.wait(), through.wait()
    return {"seconds": took, "rows": a.rows}, pa.ipc.open_stream(pa.memory_map(str(out))).read_all()


def by_dask():
    import dask
    import dask.dataframe as dd
    from dask.distributed import Client, LocalCluster

    out = a.folder / "dask"
    with LocalCluster(n_workers=a.cores, threads_per_worker=1, processes=True, dashboard_address=None) as cluster, Client(cluster):
        fitted = model()
        begun = time.perf_counter()
        parts = dd.read_parquet(PARTS)
        meta = fitted.infer(parts.head(1), keep=["person"]).iloc[:0]
        latents = parts.map_partitions(lambda part, fitted: fitted.infer(part, keep=["person"]), fitted, meta=meta)
        latents.to_parquet(out)
        took = time.perf_counter() - begun
    return {"seconds": took, "rows": a.rows, "version": dask.__version__}, out


def by_ray():
    import ray

    out = a.folder / "ray"
    ray.init(num_cpus=a.cores, include_dashboard=False, log_to_driver=False, configure_logging=False)
    fitted = model()
    begun = time.perf_counter()
    rows = ray.data.read_parquet(str(PARTS))
    latents = rows.map_batches(lambda table: fitted.infer(table, keep=["person"]), batch_format="pyarrow", batch_size=65_536)
    latents.write_parquet(str(out))
    took = time.perf_counter() - begun
    ray.shutdown()
    return {"seconds": took, "rows": a.rows, "version": ray.__version__}, out


def by_spark():
    import sys

    import pyspark
    from pyspark.sql import SparkSession

    out = a.folder / "spark"
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master(f"local[{a.cores}]").appName("ramp").config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "4g").config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "65536").getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    fitted = model()
    begun = time.perf_counter()
    rows = spark.read.parquet(str(PARTS))
    names = fitted.infer(rows.limit(1).toArrow()).column_names
    schema = "person long, " + ", ".join(f"`{name}` double" for name in names)
    latents = rows.mapInArrow(lambda batches: fitted.infer_batches(batches, keep=["person"]), schema)
    latents.write.parquet(str(out))
    took = time.perf_counter() - begun
    spark.stop()
    return {"seconds": took, "rows": a.rows, "version": pyspark.__version__}, out


def compare(out):
    """What was written of the first people must be what the command writes of them, to the last digits: networks take other blocks of rows together."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    some = a.folder / "compared.parquet"
    command(["--data", str(a.folder / "some.parquet"), "--out", str(some), "--keep", "person"], stdout=subprocess.DEVNULL)
    wanted = pq.read_table(some).sort_by("person")
    source = ds.dataset(out, format="parquet") if isinstance(out, pathlib.Path) else ds.dataset(out)
    count = source.count_rows()
    got = source.to_table(filter=ds.field("person") < COMPARED).sort_by("person")
    assert got.num_rows == wanted.num_rows, f"{got.num_rows} of {wanted.num_rows} people"
    for name in wanted.column_names:
        one, other = (np.asarray(t.column(name).to_pandas(), float) for t in (got, wanted))
        far = np.max(np.abs(one - other))
        assert far < 1e-5, f"{name}: apart by {far}"
    return count


def main():
    if a.way == "make":
        print(json.dumps(make()))
    else:
        ways = {"memory": in_memory, "command": by_command, "stream": by_stream, "dask": by_dask, "ray": by_ray, "spark": by_spark}
        line, out = ways[a.way]()
        used = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        # Engines have processes of their own, which are not counted.
        if a.way in ("command", "stream"):
            line["peak_mb"] = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        elif a.way == "memory":
            line["peak_mb"] = used / 1024
        written = compare(out)
        assert written == line["rows"], f"{written} rows were written of {line['rows']}"
        print(json.dumps(line))


# Engines start processes that read this file again.
if __name__ == "__main__":
    main()
