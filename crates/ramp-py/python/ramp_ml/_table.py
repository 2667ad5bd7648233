"""Tables that come out: as what went in, or as whatever library the user has."""

from __future__ import annotations

from typing import Any

from . import _lib
from ._data import Source

__all__ = ["Table"]


class Table:
    """A table that the library made. Everything that speaks Arrow reads it without a copy.

    Examples
    --------
    >>> from ramp_ml import Chain, Ramp, datasets
    >>> walks = datasets.make_walks()
    >>> model = Ramp(Chain(observe=["walk"]), iterations=20, verbose=False).fit(walks)
    >>> table = model.forecast(walks, steps=2)
    >>> table.columns[:2]
    ['sample', 'ahead']
    >>> table["ahead"].tolist()[:3]
    [1, 2, 1]
    """

    def __init__(self, table: _lib.Table) -> None:
        self._table = table

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self._table.column_names

    def __len__(self) -> int:
        return len(self._table)

    def __getitem__(self, name: str) -> Any:
        try:
            return self._table.column(self.columns.index(name))
        except ValueError:
            raise KeyError(name) from None

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<ramp_ml.Table of {len(self)} rows: {', '.join(self.columns)}>"

    def to_dict(self) -> dict[str, Any]:
        """A dict of NumPy arrays, and of lists where a column is of texts."""
        return {name: self._table.column(i) for i, name in enumerate(self.columns)}

    def to_pyarrow(self) -> Any:
        """A ``pyarrow.Table``."""
        import pyarrow

        return pyarrow.table(self)

    def to_polars(self) -> Any:
        """A ``polars.DataFrame``."""
        import polars

        return polars.DataFrame(self)

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame``."""
        import pandas

        try:
            import pyarrow
        except ImportError:
            return pandas.DataFrame(self.to_dict())
        return pyarrow.table(self).to_pandas()


def like(table: _lib.Table, source: Source) -> Any:
    """A table as the user's own library has it."""
    wrapped = Table(table)
    if source.kind == "pandas":
        frame = wrapped.to_pandas()
        if source.index is not None and len(source.index) == len(frame):
            frame.index = source.index
        return frame
    if source.kind == "polars":
        return wrapped.to_polars()
    if source.kind == "pyarrow":
        return wrapped.to_pyarrow()
    if source.kind == "dict" and not source.is_arrays:
        return wrapped.to_dict()
    return wrapped
