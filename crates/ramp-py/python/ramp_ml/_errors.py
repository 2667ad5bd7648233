"""Exceptions and warnings of ramp_ml."""

from __future__ import annotations

__all__ = ["MissingColumnError", "RampWarning"]


class MissingColumnError(KeyError):
    """A column, an array or a latent that is not there; the sentence says what there is.

    >>> try:
    ...     raise MissingColumnError("there is no column `q9`: did you mean `q8`?")
    ... except KeyError as error:
    ...     print(error)
    there is no column `q9`: did you mean `q8`?
    """

    def __str__(self) -> str:
        # A KeyError shows its argument in quotes, which suits keys and not sentences.
        return str(self.args[0]) if self.args else ""


class RampWarning(UserWarning):
    """What a fit, or new data, has that its user should know.

    >>> import warnings
    >>> warnings.simplefilter("ignore", RampWarning)
    """
