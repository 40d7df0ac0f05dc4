"""Write docs/commands.md and docs/api.md from the help texts of the commands and the docstrings of
the public names. The text of docs/commands.md before the first command, and after the options of
each, is kept.

python .ci/pages.py        from the root of the checkout, with the package installed
"""

import importlib
import inspect
import re
import textwrap
from pathlib import Path

from annealed.pipelines.cli.app import app
from typer.main import get_command

DOCS = Path("docs")

PAGES = {
    "faces": "faces.md",
    "keypoints": "keypoints.md",
    "motion": "motion.md",
    "pets": "pets.md",
    "sensors": "sensors.md",
    "select": "tables.md",
    "predict": "tables.md",
    "export": "export.md",
    "reproduce": "../experiments/pages/benchmarks.md",
}

NAMES = """# Python API

Import a name from its package: `from annealed.learners import FSAClassifier`. FSA means feature selection with annealing.
Docstrings describe parameters, shapes, units and errors, often with an example. To read one, call `help(FSAClassifier)`.
"""

GROUPS = {
    "learners": {
        "Start here": (
            "FSAClassifier FSARegressor FSARanker Constraints PiecewiseLinear Refinement "
            "Schedule ScoreCardClassifier"
        ),
        "Choice of the number of features": "FSAClassifierCV FSARegressorCV FSAPath",
        "Statistical guarantees": (
            "FDRSelector FSAInference selection_pvalues selection_stability SelectionStability"
        ),
        "Losses and priors": (
            "Loss MarginLoss LogisticLoss LorenzLoss HuberisedHingeLoss ExponentialLoss "
            "SquaredLoss HuberLoss QuantileLoss PoissonLoss NegativeBinomialLoss GammaLoss "
            "TweedieLoss CoxLoss MultinomialLoss VapnikLoss PairwiseLogisticLoss ChainLoss "
            "Prior"
        ),
        "Other selectors": (
            "ForwardBackwardClassifier ForwardBackwardRegressor forward_backward_minimise "
            "SparseMinimum MinimaxSparseClassifier LogitBoostClassifier TISPClassifier "
            "TISPRegressor RankBoost"
        ),
        "Metric and kernel learning": (
            "SDist SDistCV SparseFourierClassifier SparseFourierRegressor SparseFourierFeatures"
        ),
        "Online learners": (
            "StabilizedTruncatedSGDClassifier TruncatedGradientClassifier FOBOSClassifier "
            "RDAClassifier"
        ),
        "Sequences": "FSACRF ForwardBackwardCRF LinearChainCRF",
        "Out-of-core data": "on_disk on_dask write_csr",
    },
    "vision": {
        "Images": "read_image as_rgb nearest_pixel gaussian_pyramid Level",
        "Window features": (
            "FeaturePool HogLayout Responses level_channels LevelChannels scan extract_patches"
        ),
        "Visual words": "DenseSift Descriptors VisualWords colour_histogram PetFeatures Photograph",
        "Tracks and motion": (
            "read_tracks read_sequences Tracks TrackSequence Tracker complete_tracks candidates "
            "Candidate SubspaceFamily NeighbourFamily SegmentationFeatures misclassification"
        ),
    },
    "models": {
        "Model files": "load_model list_models resolve_model",
        "Tables": "TabularSelector TabularModel explain Contributions export",
        "Keypoints": (
            "KeypointDetector DetectionOptions DetectionResult Detection Instance KeypointModel "
            "align_face"
        ),
        "Motion, photographs and sensors": (
            "SegmentationRanker ImageClassifier ClassifierSettings Explanation ActivityModel"
        ),
    },
}

_GALLERY = "[{}](../examples/gallery/{}.py)"
PLOTS = {
    "plot_path": _GALLERY.format("coefficients along a path", "01_path"),
    "plot_responses": _GALLERY.format("response curves", "02_responses"),
    "plot_schedule": _GALLERY.format("number of features after each step", "06_out_of_core"),
    "plot_coefficients": _GALLERY.format("coefficients", "16_plots"),
    "plot_scores": _GALLERY.format("scores by the number of columns", "15_data_frame"),
    "plot_bars": _GALLERY.format("effects of columns", "15_data_frame"),
    "plot_loss": _GALLERY.format("loss at each step", "16_plots"),
    "plot_inclusion": _GALLERY.format("inclusion probabilities", "16_plots"),
    "plot_interactions": _GALLERY.format("interacting columns", "16_plots"),
    "plot_chains": _GALLERY.format("traces of Markov chains", "16_plots"),
}


def walk(command, name="annealed"):
    """Commands below ``command`` with their names."""
    for part, below in getattr(command, "commands", {}).items():
        yield f"{name} {part}", below
        yield from walk(below, f"{name} {part}")


def argument(parameter) -> str:
    """An argument in a synopsis."""
    text = (parameter.metavar or parameter.name.upper()) + (" ..." if parameter.nargs == -1 else "")
    return text if parameter.required else f"[{text}]"


def row(parameter) -> str:
    """A line of a command's table."""
    text = (parameter.help or "").strip()
    if parameter.param_type_name == "argument":
        return f"| `{argument(parameter).strip('[]').split()[0]}` | {text} |"
    if parameter.required:
        text += " Required."
    elif not parameter.is_flag and parameter.default not in (None, (), []):
        default = parameter.default
        text += f" Default: {', '.join(default) if isinstance(default, list) else default}."
    return f"| {', '.join(f'`{o}`' for o in parameter.opts + parameter.secondary_opts)} | {text} |"


def written(name: str) -> str:
    """The text of the page after the options of a command: its output with --json."""
    page = (DOCS / "commands.md").read_text()
    match = re.search(
        rf"^#+ {name}\n(?:(?!^#).*\n)*?(With `--json`(?:(?!^#).*\n)*)", page, re.MULTILINE
    )
    return match[1] if match else ""


def section(name: str, command) -> str:
    """One command: heading, sentence, synopsis, table, output."""
    page = PAGES.get(name.removeprefix("annealed "))
    text = "\n".join(
        textwrap.wrap(
            command.help.partition("\n\n")[0] + (f" See [{page}]({page})." if page else ""),
            120,
        )
    )
    lines = [f"{'#' * name.count(' ')}# {name}", "", text, ""]
    if not hasattr(command, "commands"):
        params = [p for p in command.params if not getattr(p, "hidden", False)]
        params.sort(key=lambda p: p.param_type_name != "argument")
        arguments = [argument(p) for p in params if p.param_type_name == "argument"]
        lines += [
            f"    {' '.join([name, *arguments])} [OPTIONS]",
            "",
            "| | |",
            "|---|---|",
            *map(row, params),
            "",
        ]
    return "\n".join([*lines, written(name)]).rstrip() + "\n"


SHORT_NAMES = {
    "Big Data Learning": "Barbu et al. (2017)",
    "Classification and Ranking": "Barbu et al. (2014)",
    "Forward-Backward Greedy": "Liu et al. (2014)",
    "Minimax Sparse Logistic": "Tan et al. (2013)",
    "Flexible Sparse Learning": "Ma (thesis)",
    "Thresholding-Based Iterative": "She (2009)",
    "Sparse Online Learning via": "Langford et al. (2009)",
    "Forward Backward Splitting": "Duchi and Singer (2009)",
    "Dual Averaging": "Xiao (2010)",
    "Combining Preferences": "Freund et al. (2003)",
    "Additive Logistic Regression": "Friedman et al. (2000)",
}


def summary(public) -> str:
    """The first paragraph of a docstring on one line, with papers by their short names in place of
    footnotes."""
    paragraph, *rest = (inspect.getdoc(public) or "").split("\n\n")
    text = " ".join(paragraph.split()).replace("|", "\\|")
    notes = dict(
        re.findall(
            r"^\.\. \[(\d+)\] (.*?)(?=^\.\. \[|\Z)", "\n\n".join(rest), re.MULTILINE | re.DOTALL
        )
    )
    for number, note in notes.items():
        title = " ".join(note.lower().split())
        name = next((short for words, short in SHORT_NAMES.items() if words.lower() in title), None)
        if name:
            text = text.replace(f"{name} [{number}]_", name)
            text = re.sub(rf"(?<! of)(?<! in) \[{number}\]_(?=\.$)", f", {name}", text).replace(
                f"[{number}]_", name
            )
    text = re.sub(r":\w+:`~?([^`]*)`", r"`\1`", re.sub(r" ?\[\d+\]_", "", text))
    return re.sub(r" +([.,;:)])", r"\1", text).replace("``", "`")


def names(package: str) -> str:
    """The public names of a package, in its groups."""
    module = importlib.import_module(f"annealed.{package}")
    groups = GROUPS[package]
    grouped = sorted(name for group in groups.values() for name in group.split())
    if grouped != sorted(module.__all__):
        raise SystemExit(
            f"GROUPS of annealed.{package}: expected each public name once; "
            f"see {set(grouped) ^ set(module.__all__)}"
        )
    lines = [f"## annealed.{package}", "", summary(module), ""]
    for title, group in groups.items():
        rows = [f"| `{name}` | {summary(getattr(module, name))} |" for name in group.split()]
        lines += [f"### {title}", "", "| name | |", "|---|---|", *rows, ""]
    return "\n".join(lines)


def plots() -> str:
    """The plots of learners, each with a page that shows it."""
    module = importlib.import_module("annealed.learners.plots")
    rows = [
        f"| `{name}` | {summary(getattr(module, name))} | {where} |"
        for name, where in PLOTS.items()
    ]
    head = [
        "## annealed.learners.plots",
        "",
        summary(module),
        "",
        "| name | | example |",
        "|---|---|---|",
    ]
    return "\n".join([*head, *rows, ""])


if __name__ == "__main__":
    head = (DOCS / "commands.md").read_text().partition("\n## ")[0]
    commands = [section(name, command) for name, command in walk(get_command(app))]
    (DOCS / "commands.md").write_text("\n".join([head, *commands]))
    (DOCS / "api.md").write_text(
        "\n".join([NAMES, names("learners"), plots(), names("vision"), names("models")])
    )
