"""Figure of motion segmentation errors, from Barbu et al. (2014)."""

from dataclasses import replace

from annealed.pipelines.motion.report import cumulative_figure
from matplotlib.figure import Figure

from ..tables.motion import paper_results

_NAMES = {"VC": "VC: smallest mean distance", "RankBoost": "RankBoost", "all": "FSA-Rank"}


def cumulative(data_dir=None, *, runs: int = 10, checkpoint=None) -> Figure:
    """Draw the cumulative test errors for two and three motions (Figure 9 of Barbu et al. (2014)).

    The figure shows the rule of VC and the rankings on all features, applied to the candidates of
    VC, without the other programs in the paper's figure.
    """
    benchmark, results = paper_results(runs, data_dir, checkpoint)
    return cumulative_figure(
        benchmark, [replace(r, method=_NAMES[r.method]) for r in results if r.method in _NAMES]
    )
