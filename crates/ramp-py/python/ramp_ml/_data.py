"""Data as users have it, made ready for the library without copies: tables that speak Arrow, NumPy columns and arrays, files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ._chain import Chain

__all__ = ["Source", "source_of"]


@dataclass
class Source:
    """Data on its way to the library."""

    #: A path, an object with ``__arrow_c_stream__``, a dict of columns or a tuple of named arrays.
    payload: Any
    #: The columns or arrays, where they are known.
    names: list[str] | None
    #: Whether the names are the user's, and not ``x0``, ``x1``, ….
    named: bool
    #: Where the data comes from: ``"pandas"``, ``"polars"``, ``"pyarrow"``, ``"dict"``, ``"numpy"``, ``"path"``, ``"other"``.
    kind: str
    #: The index of a pandas frame.
    index: Any = field(default=None)

    @property
    def is_arrays(self) -> bool:
        return isinstance(self.payload, tuple)

    def rename(self, names: list[str]) -> None:
        """Calls the columns of a frame otherwise."""
        if isinstance(self.payload, dict):
            self.payload = dict(zip(names, self.payload.values()))
        elif self.kind == "pandas":
            self.payload = self.payload.set_axis(names, axis=1)
        elif self.kind == "polars":
            self.payload = self.payload.rename(dict(zip(self.names or [], names)))
        elif self.kind == "pyarrow":
            self.payload = self.payload.rename_columns(names)
        else:
            raise ValueError("the data has other feature names than in fit")
        self.names = names


def source_of(data: Any, tree: Any = None, names: list[str] | None = None) -> Source:
    """Makes data ready. ``names`` are those of the tree's observations, for arrays without a name of their own."""
    if data is None:
        raise ValueError("no data was given")
    if isinstance(data, (str, os.PathLike)):
        path = os.fspath(data)
        if not isinstance(path, str):
            path = os.fsdecode(path)
        return Source(path, None, True, "path")
    if hasattr(data, "toarray") and hasattr(data, "nnz"):
        raise TypeError("sparse data is not supported: convert it with X.toarray()")
    if isinstance(data, Mapping):
        return _mapping(data, tree)
    module = type(data).__module__.split(".")[0]
    if module == "pandas":
        return _pandas(data, tree, names)
    if hasattr(data, "__arrow_c_stream__") and not isinstance(data, np.ndarray):
        kind = module if module in ("polars", "pyarrow") else "other"
        if kind == "polars" and not hasattr(data, "columns"):
            raise ValueError("Expected 2D array, got 1D array instead: give a DataFrame, not a Series")
        return Source(data, _arrow_names(data), True, kind)
    return _numpy(np.asarray(data), tree, names)


def _arrow_names(data: Any) -> list[str] | None:
    schema = getattr(data, "schema", None)
    for names in (
        getattr(data, "column_names", None),
        getattr(schema, "names", None),
        getattr(data, "columns", None),
    ):
        if isinstance(names, list) and all(isinstance(name, str) for name in names):
            return list(names)
        if callable(names):
            continue
    return None


def _in_arrays(tree: Any) -> bool:
    """Whether a chain's sequences are arrays and not rows of a long table."""
    return isinstance(tree, Chain) and tree.sequence is None and tree.time is None


def _mapping(data: Mapping[Any, Any], tree: Any) -> Source:
    columns = {str(name): np.asarray(values) for name, values in data.items()}
    names = list(columns)
    if any(values.ndim == 0 for values in columns.values()):
        raise ValueError("a dict of data has one array for every column, not single values")
    if any(values.ndim > 1 for values in columns.values()):
        arrays = tuple((name, array_of(values, name)) for name, values in columns.items())
        return Source(arrays, names, True, "dict")
    table = {name: column_of(values, name) for name, values in columns.items()}
    return Source(table, names, True, "dict")


def _pandas(data: Any, tree: Any, names: list[str] | None) -> Source:
    if not hasattr(data, "columns"):
        raise ValueError("Expected 2D array, got 1D array instead: give a DataFrame, not a Series")
    labels = list(data.columns)
    named = all(isinstance(label, str) for label in labels)
    if not named and any(isinstance(label, str) for label in labels):
        raise TypeError(
            "Feature names are only supported if all input features have string names; convert them with "
            "X.columns = X.columns.astype(str)"
        )
    if not named:
        return _numpy(data.to_numpy(), None, None, index=data.index)
    if len(set(labels)) < len(labels):
        raise ValueError(f"two columns have the same name: {sorted(labels)}")
    if hasattr(data, "__arrow_c_stream__") and _has_pyarrow():
        # Columns of mixed objects have no Arrow type.
        if not any(dtype == object for dtype in data.dtypes):
            return Source(data, labels, True, "pandas", data.index)
    table = {}
    for label in labels:
        try:
            table[label] = _series(data[label], label)
        except TypeError:
            # Lists and the like have no reading, which is a mistake where the tree names them.
            if tree is None or names is None or label in names:
                raise
    return Source(table, labels, True, "pandas", data.index)


def _has_pyarrow() -> bool:
    import importlib.util

    return importlib.util.find_spec("pyarrow") is not None


def _series(series: Any, name: str) -> Any:
    kind = getattr(series.dtype, "kind", "O")
    if kind in "fiub" and isinstance(series.dtype, np.dtype):
        return column_of(series.to_numpy(), name)
    return column_of(np.asarray(series, dtype=object), name)


def _numpy(data: Any, tree: Any, names: list[str] | None, index: Any = None) -> Source:
    if data.ndim < 2:
        raise ValueError(
            f"Expected 2D array, got {data.ndim}D array instead.\nReshape your data either using "
            "array.reshape(-1, 1) if it has a single feature or array.reshape(1, -1) if it contains a single sample."
        )
    if data.ndim > 2 or _in_arrays(tree):
        if names is None or len(names) != 1:
            of = "none" if not names else ", ".join(names)
            raise ValueError(
                f"an array of {data.ndim} axes is one observation, but the tree has: {of}; give a dict of arrays"
            )
        return Source(((names[0], array_of(data, names[0])),), list(names), True, "numpy")
    if np.iscomplexobj(data):
        raise ValueError(f"Complex data not supported: {data.dtype}")
    for axis, what in enumerate(("sample", "feature")):
        if data.shape[axis] == 0:
            raise ValueError(
                f"Found array with 0 {what}(s) (shape={data.shape}) while a minimum of 1 is required."
            )
    labels = [f"x{i}" for i in range(data.shape[1])]
    if data.dtype == object or data.dtype.kind in "USM":
        table = {label: column_of(data[:, i], label) for i, label in enumerate(labels)}
    else:
        data = _native(data)
        table = {label: data[:, i] for i, label in enumerate(labels)}
    return Source(table, labels, False, "numpy", index)


def _native(values: Any) -> Any:
    """Numbers of a width and byte order that the library reads as they are."""
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(np.float64), np.nan)
    if values.dtype.kind == "f" and values.dtype.itemsize > 8:
        values = values.astype(np.float64)
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    return values


def column_of(values: Any, name: str) -> Any:
    """A column: numbers as they are, everything else as texts with None for what is missing."""
    if np.iscomplexobj(values):
        raise ValueError(f"Complex data not supported: column {name!r} is of {values.dtype}")
    if values.dtype.kind in "fiub":
        return _native(values)
    if values.dtype.kind == "M":
        missing = np.isnat(values)
        texts = np.datetime_as_string(values)
        return [None if gone else str(text) for text, gone in zip(texts, missing)]
    cells = [None if _is_missing(cell) else cell for cell in values.tolist()]
    if all(cell is None or isinstance(cell, (int, float)) for cell in cells) and not any(
        isinstance(cell, bool) for cell in cells
    ):
        return np.array([np.nan if cell is None else cell for cell in cells], dtype=np.float64)
    for cell in cells:
        if isinstance(cell, (dict, list, tuple, set)):
            raise TypeError(
                f"argument must be a string or a number, not {type(cell).__name__}: column {name!r} holds {cell!r}"
            )
    return [None if cell is None else _text(cell) for cell in cells]


def _text(cell: Any) -> str:
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, bytes):
        return cell.decode("utf-8", "replace")
    return str(cell)


def _is_missing(cell: Any) -> bool:
    if cell is None:
        return True
    if isinstance(cell, float):
        return cell != cell
    return type(cell).__name__ in ("NAType", "NaTType")


def array_of(values: Any, name: str) -> Any:
    """An array of several axes: float32 and uint8 in C order as they are, other numbers as float32."""
    if values.dtype.kind not in "fiub":
        raise TypeError(f"array {name!r} is of {values.dtype}, where numbers are needed")
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(np.float32), np.nan)
    if values.dtype not in (np.dtype(np.float32), np.dtype(np.uint8)):
        values = values.astype(np.float32)
    return np.ascontiguousarray(values)
