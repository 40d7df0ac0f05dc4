"""The stability figure of the PAMI text (its Figure 6): AUC against rate, mu and number of steps, ours alone.

    python benchmarks/stability.py docs/stability.png --runs 10 --checkpoint stability.cells
"""

from __future__ import annotations

import argparse

import matplotlib.pyplot as plt
from annealed.pipelines.reproduce.registry import reproduce

NAMES = {"FSA": "logistic", "FSV": "Huberised hinge", "FSL": "Lorenz"}
LABELS = {"learning_rate": "learning rate", "mu": "mu", "n_steps": "number of steps"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", help="picture to write")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--checkpoint", help="file of finished points")
    arguments = parser.parse_args()
    table = reproduce("fsa-stability", arguments.runs, checkpoint=arguments.checkpoint)
    figure, axes = plt.subplots(1, 3, figsize=(9, 2.8), sharey=True, layout="constrained")
    for ax, (parameter, label) in zip(axes, LABELS.items()):
        for (method, name), marker in zip(NAMES.items(), "os^"):
            points = [(r["value"], r["AUC"]) for r in table["rows"] if r["parameter"] == parameter and r["method"] == method]
            ax.semilogx(*zip(*points), marker=marker, markersize=4, label=name)
        ax.set_xlabel(label)
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("AUC")
    axes[0].legend()
    figure.savefig(arguments.out, dpi=100)


if __name__ == "__main__":
    main()
