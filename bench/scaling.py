"""How long a step takes on many ranks: a model of what two cores can measure, drawn to a thousand ranks; and what a rank holds in memory.

Time is that of the networks, divided by the shards of a batch, that of the pairwise term, divided by its pieces, and that of what travels. The first two are measured on one thread;
of the last, bytes are measured on 2 to 16 ranks within a process and carried on, and the network is assumed.
"""
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

BENCH = pathlib.Path(__file__).resolve().parent
ROOT = BENCH.parent
# Gigabits a second, and what a call takes at least between two machines, in microseconds.
NETWORKS = {"10 Gbit/s": (10, 30), "100 Gbit/s": (100, 3)}
# Calls of a step: two gathers of messages and values, two exchanges of the pairwise term, gradients there and back, rows of the batch, and whether to stop.
CALLS = 8
BATCHES = (10_000, 100_000)
# As the engine cuts a batch; see `blocks_of` in crates/ramp/src/model/evaluate.rs and `PIECE` of the pairwise term.
BLOCK, SHARDS, MOST_SHARDS, PIECE = 256, 16, 1024, 2048
MESSAGES = 20


def shards(batch):
    blocks = math.ceil(batch / BLOCK)
    each = math.ceil(blocks / min(max(SHARDS, blocks // 16), MOST_SHARDS))
    return math.ceil(blocks / each)


def solve(rows, values):
    """Least squares by the normal equations, each feature in units of its largest."""
    units = [max(abs(row[i]) for row in rows) or 1 for i in range(len(rows[0]))]
    rows = [[x / u for x, u in zip(row, units)] for row in rows]
    n = len(units)
    matrix = [[sum(r[i] * r[j] for r in rows) + (1e-12 if i == j else 0) for j in range(n)] + [sum(r[i] * v for r, v in zip(rows, values))] for i in range(n)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda k: abs(matrix[k][i]))
        matrix[i], matrix[pivot] = matrix[pivot], matrix[i]
        for k in range(n):
            if k != i:
                by = matrix[k][i] / matrix[i][i]
                matrix[k] = [x - by * y for x, y in zip(matrix[k], matrix[i])]
    return [matrix[i][n] / matrix[i][i] / units[i] for i in range(n)]


def features(batch, ranks):
    return [batch, batch / ranks, batch * batch / ranks, 1, 1 / ranks]


class Model:
    """The time of a step of the linear tree."""

    def __init__(self, batch, network_ms, pairwise_ms, traffic):
        self.batch, self.network, self.pairwise = batch, network_ms, pairwise_ms
        self.coefficients = solve([features(b, p) for b, p, _ in traffic], [mb for _, _, mb in traffic])

    def megabytes(self, batch, ranks):
        return max(0.0, sum(c * f for c, f in zip(self.coefficients, features(batch, ranks)))) if ranks > 1 else 0.0

    def milliseconds(self, batch, ranks, network):
        gigabits, microseconds = NETWORKS[network]
        grown = batch / self.batch
        own = math.ceil(shards(batch) / ranks) / shards(batch)
        pieces = MESSAGES * math.ceil(batch / PIECE)
        time = self.network * grown * own + self.pairwise * grown**2 * math.ceil(pieces / ranks) / pieces
        if ranks > 1:
            time += 8 * self.megabytes(batch, ranks) / gigabits + CALLS * math.log2(ranks) * microseconds / 1e3
        return time


def draw(model, path):
    """Speed-up over ranks, both in powers of ten."""
    width, height, left, bottom = 640, 400, 60, 50
    x = lambda ranks: left + (width - left - 150) * math.log10(ranks) / 3
    y = lambda speed: height - bottom - (height - bottom - 20) * math.log10(max(speed, 0.5) / 0.5) / math.log10(2000)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">', f'<rect width="{width}" height="{height}" fill="white"/>']
    for power in range(4):
        at = 10**power
        out.append(f'<line x1="{x(at):.1f}" y1="20" x2="{x(at):.1f}" y2="{height - bottom}" stroke="#ddd"/><text x="{x(at):.1f}" y="{height - bottom + 16}" text-anchor="middle">{at:,}</text>')
        out.append(f'<line x1="{left}" y1="{y(at):.1f}" x2="{x(1000):.1f}" y2="{y(at):.1f}" stroke="#ddd"/><text x="{left - 6}" y="{y(at) + 4:.1f}" text-anchor="end">{at:,}</text>')
    out.append(f'<text x="{(left + x(1000)) / 2:.1f}" y="{height - 12}" text-anchor="middle">ranks of one core</text>')
    out.append(f'<text x="16" y="{height / 2}" text-anchor="middle" transform="rotate(-90 16 {height / 2})">times as fast as one</text>')
    points = [10 ** (i / 60) for i in range(181)]
    out.append(f'<line x1="{x(1):.1f}" y1="{y(1):.1f}" x2="{x(1000):.1f}" y2="{y(1000):.1f}" stroke="#999" stroke-dasharray="2 3"/>')
    ends = []
    for batch, colour in zip(BATCHES, ("#1b6ca8", "#c1440e")):
        alone = model.milliseconds(batch, 1, "10 Gbit/s")
        for network, dash in zip(NETWORKS, ("6 4", "none")):
            whole = sorted({round(p) for p in points})
            line = " ".join(f"{x(p):.1f},{y(alone / model.milliseconds(batch, p, network)):.1f}" for p in whole)
            out.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"/>')
            ends.append([y(alone / model.milliseconds(batch, 1000, network)), colour, f"batch {batch:,}, {network}"])
    last = -99
    for end in sorted(ends):
        last = max(end[0], last + 14)
        out.append(f'<text x="{x(1000) + 6:.1f}" y="{last + 4:.1f}" fill="{end[1]}" font-size="10">{end[2]}</text>')
    path.write_text("\n".join([*out, "</svg>", ""]))


def pays(model, batch, network):
    """The most ranks that are each used for half of their time at least, and how many times as fast they are."""
    alone = model.milliseconds(batch, 1, network)
    most = max(p for p in range(1, 1001) if alone / model.milliseconds(batch, p, network) >= p / 2)
    return most, alone / model.milliseconds(batch, most, network)


def write_book(model, memory, about, quick):
    """Writes the picture and the tables into the book; of a quick run beside it, where they can be looked at."""
    book, picture = ROOT / "docs" / "src" / "scale.md", ROOT / "docs" / "src" / "pictures" / "ranks.svg"
    if quick:
        picture = BENCH / "quick.svg"
    draw(model, picture)
    drawn = "![Times as fast as one rank, over ranks, for two batches and two networks](pictures/ranks.svg)"
    lines = [about, "", drawn, "", "| batch | network | ranks that are used for half of their time at least | times as fast as one | a rank gets in a step |", "|---:|---|---:|---:|---:|"]
    for batch in BATCHES:
        for network in NETWORKS:
            most, speed = pays(model, batch, network)
            lines.append(f"| {batch:,} | {network} | {most:,} | {speed:,.0f} | {model.megabytes(batch, max(2, most)):,.1f} MB |")
    if memory:
        lines += ["", f"Memory of `ramp fit` with {memory[0]['rows']:,} rows of 14 columns (Parquet), the most of any rank:", "", "| ranks | peak memory of a rank | of one process |", "|---:|---:|---:|"]
        for one in memory:
            lines.append(f"| {one['ranks']} | {one['peak_mb']:,.0f} MB | {one['peak_mb'] / memory[0]['peak_mb']:.2f} |")
    if quick:
        (BENCH / "quick-ranks.md").write_text("\n".join([*lines, ""]))
        return
    begin, end = "<!-- ranks begin -->", "<!-- ranks end -->"
    before, rest = book.read_text().split(begin)
    text = before + "\n".join([begin, *lines, end]) + rest.split(end)[1]
    temporary = book.with_suffix(".tmp")
    temporary.write_text(text)
    temporary.rename(book)


WRAPPED = """
import json, os, resource, subprocess, sys
done = subprocess.run(sys.argv[2:], stdout=subprocess.DEVNULL)
rank = os.environ.get("OMPI_COMM_WORLD_RANK", "0")
with open(f"{sys.argv[1]}-{rank}.json", "w") as file:
    json.dump({"peak_mb": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024}, file)
sys.exit(done.returncode)
"""
MODEL = """[data]
file = "read_speed.parquet"
[tree]
newick = "((NAMES)y,level)z;"
[train]
iterations = 20
batch = 1000
"""


def memory_of_ranks(folder, rows, say):
    """Peak memory of every rank of `mpirun -n P ramp fit`, for a table that was made in a folder; none where there is no MPI."""
    if not (shutil.which("mpirun") and shutil.which("mpicc")):
        say("there is no MPI, so the memory of ranks is not measured")
        return []
    say("building the command with MPI …")
    subprocess.run(["cargo", "build", "--release", "-p", "ramp-cli", "--features", "mpi"], cwd=ROOT, check=True)
    command = shutil.copy(ROOT / "target" / "release" / "ramp", folder / "ramp")
    (folder / "model.toml").write_text(MODEL.replace("NAMES", ",".join(f"x{i}" for i in range(1, 13))))
    found = []
    for ranks in (1, 2, 4):
        say(f"memory of {ranks} ranks with {rows:,} rows …")
        note = folder / f"peak{ranks}"
        environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        launch = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)] if ranks > 1 else []
        fit = [command, "--threads", "1", "fit", folder / "model.toml", "--out", folder / f"run{ranks}"]
        subprocess.run([*launch, sys.executable, "-c", WRAPPED, note, *fit], check=True, env=environment)
        peaks = [json.loads((folder / f"peak{ranks}-{rank}.json").read_text())["peak_mb"] for rank in range(ranks)]
        say(f"  {', '.join(f'{peak:.0f} MB' for peak in peaks)}")
        found.append({"ranks": ranks, "rows": rows, "peak_mb": max(peaks), "peaks_mb": peaks})
    weights = [(folder / f"run{ranks}" / "weights.safetensors").read_bytes() for ranks in (1, 2, 4)]
    if any(one != weights[0] for one in weights):
        sys.exit("bench/run: ranks have left other weights than one process")
    return found


def measure(bench, large, row, best, say, machine):
    """What the model of many ranks is made of: the parts of a step on one thread, what travels, and what a rank holds."""
    quick, rounds = bench.chosen.quick, bench.chosen.rounds
    got = bench.alternate(
        "one thread",
        rounds,
        step=bench.ours("tree_step", large, 3 if quick else 6, 1),
        network=bench.ours("tree_step", large, 3 if quick else 12, 1, 1),
    )
    step, network = best(got["step"], "ms_per_iter"), best(got["network"], "ms_per_iter")
    rows = [row(f"step on one thread, linear tree, N = {large:,}", "ms", step), row("its network part", "ms", network)]
    sent = []
    for batch in (large // 2, large, 2 * large):
        for ranks in (2, 4, 8, 16):
            lines = bench.alternate(f"traffic, {ranks} ranks, batch {batch:,}", 1, ranks=bench.ours("tree_step", batch, 2, 1, batch, ranks))["ranks"]
            for line in lines:
                total = line["traffic"]["gather_mb"] + line["traffic"]["exchange_mb"]
                sent.append((batch, ranks, total))
                rows.append(row(f"a rank gets in a step, {ranks} ranks, batch {batch:,}", "MB", total))
    with tempfile.TemporaryDirectory(dir=BENCH, prefix=".tables-") as folder:
        count = 100_000 if quick else 2_000_000
        bench.alternate(f"a table of {count:,} rows", 1, made=bench.ours("read_speed", "make", count, pathlib.Path(folder).name))
        memory = memory_of_ranks(pathlib.Path(folder), count, say)
    rows += [row(f"peak memory of a rank, {one['ranks']} ranks, {count:,} × 14", "MB", one["peak_mb"]) for one in memory]
    if step and network and len(sent) > 5:
        model = Model(large, network, max(step - network, 0.0), sent)
        about = machine(bench, 0.0)
        told = f"Measured on {about['date']} by `bench/run --part ranks`, {about['cpu']}, commit {(about['commit'] or 'unknown')[:7]}"
        told += " (a quick run, of small batches)." if quick else "."
        write_book(model, memory, told, quick)
    return rows
