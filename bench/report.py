"""What the scripts that fill RESULTS.md share: runs that are trained once, the machine, a section between two marks."""
import datetime
import json
import os
import pathlib
import platform
import statistics
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
# How the command is run; an option of the scripts may name one that is built.
COMMAND = ["cargo", "run", "--release", "--"]


def add_binary(parser):
    parser.add_argument("--binary", help="the command, built from this commit (default: cargo run --release)")


def use_binary(path):
    if path:
        COMMAND[:] = [str(pathlib.Path(path).resolve())]


def folder_of(experiment, name, seed):
    return ROOT / "out" / f"{experiment}-paper" / f"{name}-{seed}"


def is_trained(experiment, name, seed):
    return (folder_of(experiment, name, seed) / "results.json").exists()


def trained(experiment, name, words, seed, unshown=(), whole=lambda results: True):
    """One run's results at paper scale; trained where they are not there yet, gone on with where they are half done. What is
    unshown, such as where files lie on this machine, does not go into RESULTS.md. Results of an earlier commit that are not whole
    are measured again from the state that their run left, without training."""
    folder = folder_of(experiment, name, seed)
    command = ["reproduce", experiment, "--scale", "paper", *words, "--seed", str(seed)]
    done = is_trained(experiment, name, seed) and whole(json.loads((folder / "results.json").read_text()))
    if not done:
        # Before training: what is committed meanwhile has no part in it. A run that goes on has several.
        head = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
        folder.mkdir(parents=True, exist_ok=True)
        commits = (folder / "commit").read_text().split(", then ") if (folder / "commit").exists() else []
        (folder / "commit").write_text(", then ".join([c for c in commits if c != head] + [head]))
        (folder / "machine").write_text(machine())
        subprocess.run([*COMMAND, *command, *unshown, "--out", str(folder)], cwd=ROOT, check=True)
    results = json.loads((folder / "results.json").read_text())
    results["date"] = datetime.date.fromtimestamp((folder / "results.json").stat().st_mtime)
    results["machine"] = (folder / "machine").read_text() if (folder / "machine").exists() else machine()
    results["command"] = "ramp " + " ".join(command[:-1]) + " S"
    results["commit"] = (folder / "commit").read_text() if (folder / "commit").exists() else "unknown"
    return results


def machine():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return f"{line.split(':')[1].strip()}, {len(os.sched_getaffinity(0))} cores"
    return platform.processor() or platform.machine()


def milliseconds(*runs):
    """What a step takes, where the sessions that ended these runs took any."""
    known = [run["ms_per_iteration"] for run in runs if run["ms_per_iteration"]]
    return f" of {statistics.median(known):.0f} ms" if known else ""


def met(yes):
    return "met" if yes else "**not met**"


def marks(name):
    return f"<!-- {name} begins -->", f"<!-- {name} ends -->"


def read_section(name):
    """The lines that stand between a section's marks."""
    begin, end = marks(name)
    return (ROOT / "RESULTS.md").read_text().split(begin)[1].split(end)[0].splitlines()


def read_details(name):
    """The lines that stand between the marks of a section's details."""
    text = (ROOT / "RESULTS.md").read_text()
    return text.split(f"<!-- {name}, details begin -->")[1].split(f"<!-- {name}, details end -->")[0].splitlines()


def write_section(name, lines, runs, details=None, script=None):
    """Replaces what stands between a section's marks in RESULTS.md, and says when and where these runs ended. Details go between marks of their own in the
    appendix."""
    dates = sorted({run["date"] for run in runs})
    days = " to ".join(str(day) for day in sorted({dates[0], dates[-1]}))
    lines = [f"Measured on {days}, {' and '.join(sorted({run['machine'] for run in runs}))}, by `bench/{script or name}`.", "", *lines]
    write_summary(name, lines, details)


def write_summary(name, lines, details=None):
    """Replaces what stands between a section's marks, of what other sections say."""
    begin, end = marks(name)
    path = ROOT / "RESULTS.md"
    before, rest = path.read_text().split(begin)
    text = before + "\n".join([begin, *lines, end]) + rest.split(end)[1]
    if details is not None:
        begin, end = f"<!-- {name}, details begin -->", f"<!-- {name}, details end -->"
        before, rest = text.split(begin)
        text = before + "\n".join([begin, *details, end]) + rest.split(end)[1]
    temporary = path.with_suffix(".tmp")
    temporary.write_text(text)
    temporary.rename(path)
    print(f"wrote {path.relative_to(ROOT)}")
