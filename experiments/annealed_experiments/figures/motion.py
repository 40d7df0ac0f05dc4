"""Figure of Barbu et al. (2014) on motion segmentation."""

from dataclasses import replace

from annealed.pipelines.motion.report import cumulative_figure
from matplotlib.figure import Figure

from ..tables.motion import paper_results

_NAMES = {"VC": "VC: least mean distance", "RankBoost": "RankBoost", "all": "FSA-Rank"}


def cumulative(data_dir=None, *, runs: int = 10, checkpoint=None) -> Figure:
    """Figure 9 of Barbu et al. (2014): cumulative distributions of the test error for two and three
    motions.

    Of VC's rule and of the rankings on all features, on the candidates of VC; the other programs of
    the figure are not here.
    """
    benchmark, results = paper_results(runs, data_dir, checkpoint)
    return cumulative_figure(
        benchmark, [replace(r, method=_NAMES[r.method]) for r in results if r.method in _NAMES]
    )
