"""From an estimator's parameters to the sections of a model file, and back."""

from __future__ import annotations

import json
import numbers
import operator
from typing import Any

from ._chain import Chain

# Which section of the model file a parameter belongs to.
SECTIONS: dict[str, tuple[str, ...]] = {
    "data": ("holdout", "validation", "folds", "split_seed"),
    "latents": ("family", "dim", "levels"),
    "networks": ("message", "observation", "inputs", "tying", "init", "monotone"),
    "train": (
        "iterations",
        "batch",
        "learning_rate",
        "optimizer",
        "even_rates",
        "warmup",
        "decay",
        "clip",
        "mixture",
        "population",
        "mask",
        "mask_span",
        "mask_warmup",
        "noise",
        "evaluate_every",
        "patience",
        "seed",
    ),
}


def plain(value: Any) -> Any:
    """A value as JSON knows it: NumPy's numbers as Python's, tuples as lists, and no None inside of dicts."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, Chain):
        return plain(value._settings())
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, numbers.Integral):
        return operator.index(value)
    if isinstance(value, numbers.Real):
        return float(value)
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    raise TypeError(f"{value!r} is no setting: give texts, numbers, lists or dicts")


def seed_of(random_state: Any, seed: int | None) -> int | None:
    """The seed that a scikit-learn random state stands for."""
    if random_state is None:
        return seed
    if isinstance(random_state, numbers.Integral):
        own = operator.index(random_state)
        if seed is not None and seed != own:
            raise ValueError(
                f"random_state {own} and seed {seed} are the same setting; give one of them"
            )
        return own
    if hasattr(random_state, "randint"):
        return int(random_state.randint(0, 2**31 - 1))
    if hasattr(random_state, "integers"):
        return int(random_state.integers(0, 2**31 - 1))
    raise ValueError(f"random_state is a whole number, a generator or None, not {random_state!r}")


def tree_section(tree: Any) -> dict[str, Any]:
    """The [tree] section: Newick's notation, pairs, groups, or a chain."""
    if isinstance(tree, str):
        return {"newick": tree}
    if isinstance(tree, Chain):
        return {"chain": tree._settings()}
    if isinstance(tree, dict):
        return {str(key): plain(value) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        groups = [[str(name) for name in group] for group in tree]
        pairs = all(len(group) == 2 for group in groups)
        return {"edges" if pairs else "factors": groups}
    raise TypeError(
        "a tree is a text such as '((q1,q2)a,(q3,q4)b)c;', a list of pairs or groups of names, or a Chain, "
        f"not {type(tree).__name__}"
    )


def model_file(parameters: dict[str, Any], tree: Any, seed: int | None) -> str:
    """The model file of an estimator's parameters, as JSON. What is None is left to the library's defaults."""
    file: dict[str, Any] = {"version": 1, "tree": tree_section(tree)}
    for section, keys in SECTIONS.items():
        given = {key: plain(parameters[key]) for key in keys if parameters.get(key) is not None}
        file[section] = given
    if seed is not None:
        file["train"]["seed"] = int(seed)
    for name, family in (parameters.get("latents") or {}).items():
        file["latents"][name] = {"family": family} if isinstance(family, str) else plain(family)
    observations = parameters.get("observations") or {}
    file["observations"] = {
        name: {"kind": kind} if isinstance(kind, str) else plain(kind)
        for name, kind in observations.items()
    }
    return json.dumps(file)


def parameters_of(file: dict[str, Any]) -> dict[str, Any]:
    """An estimator's parameters from a model file: the other way round."""
    parameters: dict[str, Any] = {}
    for section, keys in SECTIONS.items():
        given = file.get(section, {})
        parameters.update({key: given[key] for key in keys if key in given})
    known = SECTIONS["latents"]
    latents = {k: v for k, v in file.get("latents", {}).items() if k not in known}
    if latents:
        parameters["latents"] = latents
    if file.get("observations"):
        parameters["observations"] = file["observations"]
    tree = file.get("tree", {})
    if "chain" in tree:
        parameters["tree"] = Chain(**tree["chain"])
    elif "newick" in tree:
        parameters["tree"] = tree["newick"]
    else:
        parameters["tree"] = tree.get("edges", tree.get("factors"))
    if "seed" in parameters:
        parameters["random_state"] = parameters.pop("seed")
    return parameters
