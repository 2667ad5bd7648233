"""From `import` to posteriors with one library, and posteriors of a large table through Python and through the command.

python doors.py --library sklearn --file answers.csv           12 items of 5,000 people, some answers missing
python doors.py --make table.parquet --rows 1000000            14 columns with a latent behind each half, and a run fitted to some of them
python doors.py --infer python --file table.parquet            from file to file; or --infer path, which lets RAMP read, or --infer command
Needs: requirements-python.txt. Prints one line of JSON.
"""
import argparse, json, os, resource, subprocess, sys, time

ap = argparse.ArgumentParser()
ap.add_argument("--library", choices=["ramp_ml", "sklearn", "factor_analyzer", "semopy", "numpyro"])
ap.add_argument("--infer", choices=["python", "path", "command"])
ap.add_argument("--make")
ap.add_argument("--file")
ap.add_argument("--rows", type=int)
ap.add_argument("--command")
ap.add_argument("--threads", type=int, default=2)
a = ap.parse_args()
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"):
    os.environ[name] = str(a.threads)

ITEMS = [f"q{i}" for i in range(1, 13)]
FACETS = {"anxiety": ITEMS[:4], "anger": ITEMS[4:8], "sadness": ITEMS[8:]}


def seconds(work):
    """How long some work takes, on the clock and of all cores, and what comes of it."""
    start, busy = time.perf_counter(), time.process_time()
    result = work()
    return time.perf_counter() - start, time.process_time() - busy, result


def memory(what):
    """The process's memory in MB: now (VmRSS), or its peak (VmHWM)."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(what)) / 1024


def items(complete):
    """The answers as numbers. Who cannot take gaps gets the mean of the column in them, as most users do."""
    import numpy as np

    table = np.genfromtxt(a.file, delimiter=",", names=True)
    columns = {name: table[name] for name in ITEMS}
    if a.rows:
        columns = {name: values[: a.rows] for name, values in columns.items()}
    if complete:
        for name, values in columns.items():
            columns[name] = np.where(np.isnan(values), np.nanmean(values), values)
    return columns


def ramp_ml():
    from ramp_ml import Ramp

    facets = ",".join(f"({','.join(names)}){facet}" for facet, names in FACETS.items())
    return Ramp(f"({facets})distress;", verbose=False, n_jobs=a.threads).fit(DATA).posterior(DATA).mean


def sklearn():
    import numpy as np
    from sklearn.decomposition import FactorAnalysis

    matrix = np.column_stack(list(DATA.values()))
    return FactorAnalysis(3, rotation="varimax").fit_transform(matrix)


def factor_analyzer():
    import numpy as np
    from factor_analyzer import FactorAnalyzer

    # Its last release calls an argument of scikit-learn's by the name that it had.
    module = sys.modules[FactorAnalyzer.__module__]
    check = module.check_array
    module.check_array = lambda x, force_all_finite=True, **known: check(x, ensure_all_finite=force_all_finite, **known)
    matrix = np.column_stack(list(DATA.values()))
    return FactorAnalyzer(3, rotation="oblimin").fit(matrix).transform(matrix)


def semopy():
    import pandas as pd
    import semopy as sem

    lines = [f"{facet} =~ {' + '.join(names)}" for facet, names in FACETS.items()]
    model = sem.Model("\n".join(lines + [f"distress =~ {' + '.join(FACETS)}"]))
    frame = pd.DataFrame(DATA)
    model.fit(frame)
    return model.predict_factors(frame).to_numpy()


def numpyro():
    """Three correlated facets under one factor, linear and Gaussian, by variational inference with gaps left out."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import numpyro as pyro
    import numpyro.distributions as dist
    from numpyro.infer import SVI, Trace_ELBO
    from numpyro.infer.autoguide import AutoNormal

    matrix = np.column_stack(list(DATA.values()))
    matrix = (matrix - np.nanmean(matrix, 0)) / np.nanstd(matrix, 0)
    seen, values = ~np.isnan(matrix), np.nan_to_num(matrix)
    facet = np.repeat(np.arange(3), 4)

    def model():
        share = pyro.sample("share", dist.Uniform(0, 1).expand([3]))
        loading = pyro.sample("loading", dist.Normal(0, 1).expand([12]))
        noise = pyro.sample("noise", dist.HalfNormal(1).expand([12]))
        distress = pyro.sample("distress", dist.Normal(0, 1).expand([len(values), 1]).to_event(2))
        own = pyro.sample("facet_noise", dist.Normal(0, 1).expand([len(values), 3]).to_event(2))
        facets = jnp.sqrt(share) * distress + jnp.sqrt(1 - share) * own
        pyro.deterministic("facets", facets)
        with pyro.handlers.mask(mask=jnp.asarray(seen)):
            pyro.sample("x", dist.Normal(facets[:, facet] * loading, noise + 1e-3), obs=jnp.asarray(values))

    guide = AutoNormal(model)
    run = SVI(model, guide, pyro.optim.Adam(0.02), Trace_ELBO()).run(jax.random.PRNGKey(0), 2000, progress_bar=False)
    drawn = guide.sample_posterior(jax.random.PRNGKey(1), run.params, sample_shape=(20,))
    # Three facets for each person and draw.
    facets = jnp.sqrt(drawn["share"])[:, None] * drawn["distress"] + jnp.sqrt(1 - drawn["share"])[:, None] * drawn["facet_noise"]
    return np.asarray(facets.mean(0))


TREE = "((a1,a2,a3,a4,a5,a6,a7)a,(b1,b2,b3,b4,b5,b6,b7)b)c;"


def make(path):
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq
    from ramp_ml import Ramp

    rng = np.random.default_rng(0)
    common = rng.normal(size=a.rows)
    columns = {}
    for half in "ab":
        hidden = common + rng.normal(size=a.rows)
        for i in range(1, 8):
            values = hidden + rng.normal(size=a.rows)
            values[rng.random(a.rows) < 0.05] = np.nan
            columns[f"{half}{i}"] = pa.array(values, from_pandas=True)
    table = pa.table(columns)
    pq.write_table(table, path)
    Ramp(TREE, iterations=50, verbose=False).fit(table.slice(0, 5000)).save(path + ".run", overwrite=True)
    return {"rows": a.rows}


def infer_python():
    import pyarrow as pa
    import pyarrow.parquet as pq
    from ramp_ml import Ramp

    pa.set_cpu_count(a.threads)
    model = Ramp.load(a.file + ".run")
    # pyarrow imports a good part of itself at the first file.
    schema, rows = pq.read_schema(a.file), pq.read_metadata(a.file).num_rows
    pq.read_table(a.file, columns=[schema.names[0]]).slice(0, 1)
    size = sum(field.type.bit_width // 8 for field in schema) * rows / 2**20
    alone = memory("VmRSS")
    read, read_cpu, table = seconds(lambda: pq.read_table(a.file) if a.infer == "python" else a.file)
    # What pyarrow needs to read is not ours: the peak is counted anew, from the table in memory on.
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    before = memory("VmRSS")
    said, said_cpu, out = seconds(lambda: model.infer(table))
    peak = memory("VmHWM")
    # As much is written as the command writes.
    write, write_cpu, _ = seconds(lambda: pq.write_table(pa.table(out), a.file + ".python.parquet"))
    parts = {"read": (read, read_cpu), "infer": (said, said_cpu), "write": (write, write_cpu)}
    held = size if a.infer == "python" else 0
    return {
        "ms": round(1e3 * (read + said + write), 1),
        "cpu_ms": round(1e3 * (read_cpu + said_cpu + write_cpu), 1),
        **{f"{name}_cpu_ms": round(1e3 * cpu, 1) for name, (_, cpu) in parts.items()},
        "tables": round((peak - before + held) / size, 2),
        "process_tables": round((peak - alone) / size, 2),
        "peak_mb": round(peak, 1),
    }


def infer_command():
    words = [a.command, "--threads", str(a.threads), "infer", a.file + ".run", "--data", a.file, "--out", a.file + ".command.parquet"]
    took, _, _ = seconds(lambda: subprocess.run(words, check=True, capture_output=True))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"ms": round(1e3 * took, 1), "cpu_ms": round(1e3 * (used.ru_utime + used.ru_stime), 1), "peak_mb": round(used.ru_maxrss / 1024, 1)}


if a.make:
    print(json.dumps(make(a.make)))
elif a.infer:
    print(json.dumps(infer_command() if a.infer == "command" else infer_python()))
else:
    import numpy

    DATA = items(complete=a.library not in ("ramp_ml", "numpyro"))
    imported, imported_cpu, module = seconds(lambda: __import__(a.library))
    took, cpu, found = seconds(globals()[a.library])
    print(
        json.dumps(
            {
                "ms": round(1e3 * (imported + took), 1),
                "cpu_ms": round(1e3 * (imported_cpu + cpu), 1),
                "import_ms": round(1e3 * imported, 1),
                "import_cpu_ms": round(1e3 * imported_cpu, 1),
                "shape": list(found.shape),
                a.library: getattr(module, "__version__", "?"),
            }
        )
    )
