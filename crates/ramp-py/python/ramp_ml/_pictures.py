"""Looking at a model: its page, its tree and matplotlib's pictures."""

from __future__ import annotations

from typing import Any

from ._fitted import Fitted


class Pictures(Fitted):
    """The page and the plots of a model."""

    def report(self) -> Any:
        """The page of the fit: shown in a notebook, opened in a browser elsewhere.

        >>> from ramp_ml import Ramp, datasets
        >>> model = Ramp("(q1,q2,q3)anxiety;", iterations=10, verbose=False).fit(datasets.make_questionnaire())
        >>> "<title>Ramp" in model.report().html
        True
        """
        from ._report import Page

        page = Page(self._measured().report())
        page.show()
        return page

    def _repr_html_(self) -> str:
        return self._drawing().html(repr(self))

    def plot_tree(self, ax: Any = None) -> Any:
        """Draws the tree with what each latent explains; matplotlib's axes.

        >>> import matplotlib; matplotlib.use("agg")
        >>> from ramp_ml import Ramp
        >>> axes = Ramp("((q1,q2)calm,(q3,q4)kind)mood;").plot_tree()
        """
        from . import _plots

        return _plots.tree(self._drawing(), ax)

    def plot_training(self, ax: Any = None) -> Any:
        """Draws the free energy over the iterations, on training and on validation samples.

        >>> import matplotlib; matplotlib.use("agg")
        >>> from ramp_ml import Ramp, datasets
        >>> model = Ramp("(q1,q2,q3)anxiety;", iterations=20, verbose=False).fit(datasets.make_questionnaire())
        >>> model.plot_training().get_xlabel()
        'iteration'
        """
        from . import _plots

        return _plots.training(self._report(), ax)

    def plot_items(self, ax: Any = None) -> Any:
        """Draws the mean of the latent by the answers to each of its items.

        >>> import matplotlib; matplotlib.use("agg")
        >>> from ramp_ml import Ramp, datasets
        >>> model = Ramp("(q1,q2,q3)anxiety;", iterations=20, verbose=False).fit(datasets.make_questionnaire())
        >>> axes = model.plot_items()
        """
        from . import _plots

        return _plots.items(self._report(), ax)

    def plot_latents(
        self,
        x: str | None = None,
        y: str | None = None,
        *,
        color: str | None = None,
        ax: Any = None,
    ) -> Any:
        """Draws two coordinates of the latents for some of the rows that were learned from, coloured by a column of the data; one
        coordinate is drawn as a histogram.

        >>> import matplotlib; matplotlib.use("agg")
        >>> from ramp_ml import Ramp, datasets
        >>> tree = "((q1,q2,q3)anxiety,(q4,q5,q6)anger)distress;"
        >>> model = Ramp(tree, iterations=20, verbose=False).fit(datasets.make_questionnaire())
        >>> axes = model.plot_latents("anxiety", "anger", color="q1")
        >>> axes.get_xlabel(), axes.get_ylabel()
        ('anxiety', 'anger')
        """
        from . import _plots

        return _plots.latents(self._report(), x, y, color, ax)

    def plot_forecast(self, name: str | None = None, ax: Any = None) -> Any:
        """Draws a sequence over its last steps and what is foretold of it, with an interval: a column, or a coordinate of the latent.

        >>> import matplotlib; matplotlib.use("agg")
        >>> import pandas as pd, numpy as np
        >>> from ramp_ml import Chain, Ramp, datasets
        >>> places = datasets.make_walks()["walk"].ravel()
        >>> walks = pd.DataFrame({"who": np.repeat(np.arange(40), 12), "place": places})
        >>> model = Ramp(Chain(observe=["place"], sequence="who"), iterations=20, verbose=False).fit(walks)
        >>> model.plot_forecast("place").get_ylabel()
        'place'
        """
        from . import _plots

        return _plots.forecast(self._report(), name, ax)
