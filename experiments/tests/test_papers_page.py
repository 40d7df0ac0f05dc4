"""docs/papers.md against the papers' own tables, figures and algorithms, and against ``annealed
reproduce --list``."""

import re
from importlib import import_module
from inspect import signature
from itertools import pairwise
from pathlib import Path

import pytest
from annealed import learners
from annealed_experiments.registry import FIGURES, TABLES, entries

ROOT = Path(__file__).resolve().parents[2]
TESTS = (ROOT / "tests", ROOT / "experiments" / "tests")
# What each paper prints, as its captions number it.
ROMAN = ("I", "II", "III", "IV", "V", "VI", "VII")
PRINTED = {
    "Barbu et al. (2014)": {"Algorithm": (1, 2, 3), "Table": range(1, 6), "Figure": range(1, 10)},
    "Barbu et al. (2017)": {"Algorithm": (1,), "Table": ROMAN, "Figure": range(1, 8)},
    "Liu et al. (2014)": {"Algorithm": (1,), "Table": (1, 2), "Figure": (1, 2)},
    "Tan et al. (2013)": {"Algorithm": (1, 2, 3), "Table": ROMAN[:3], "Figure": range(1, 9)},
    "Ma (thesis)": {
        "Algorithm": (2.1, 2.2, 3.1, 3.2, 3.3, 3.4),
        "Table": (2.1, 2.2, 2.3, 2.4, 3.1, 3.2, 3.3, 3.4),
        "Figure": (2.1, 2.2, 2.3, 2.4, 2.5, 3.1, 3.2, 3.3, 3.4, 3.5, 4.1, 4.2, 4.3, 4.4, 4.5, 4.6),
    },
}
NUMBER = r"(?:[IVX]+|\d+(?:\.\d+)?)(?![\w.]*\w)"
ITEMS = re.compile(rf"(Table|Figure|Algorithm)s? ({NUMBER}(?:(?:, | and | to ){NUMBER})*)")
PAPER = re.compile(
    r"(?:Barbu et al\. )?\(201[47]\)(?: and \(201[47]\))?|Liu et al\. \(2014\)|"
    r"Tan et al\. \(2013\)|Ma \(thesis\)"
)


def numbered(text):
    """Kind and number of the tables, figures and algorithms that a text names."""
    found = set()
    for kind, numbers in ITEMS.findall(re.sub(r"(\d)\(\w\)", r"\1", text)):
        for part in re.split(", | and ", numbers):
            first, _, last = part.partition(" to ")
            *chapter, low = first.split(".")
            high = last.split(".")[-1]
            ends = [low] if not last else [str(n) for n in range(int(low), int(high) + 1)]
            found |= {(kind, ".".join([*chapter, end])) for end in ends}
    return found


def sections():
    """Paper -> rows of its table: what, where and state, and the names that ``annealed reproduce``
    gets."""
    found = {}
    for part in (ROOT / "docs" / "papers.md").read_text().split("\n## ")[1:]:
        lines = [
            re.split(r"(?<!\\) \| ", line.strip("| "))
            for line in part.splitlines()
            if line.startswith("| ")
        ][1:]
        assert all(len(line) == 3 and line[2] for line in lines), "every item has a state"
        found[part.splitlines()[0]] = [
            (*line, re.findall(r"annealed reproduce ([a-z][\w-]*)", line[1])) for line in lines
        ]
    return found


def listed():
    """(paper, kind, number) of every table and figure in ``annealed reproduce --list``, with the
    name."""
    found = {}
    for name, shows in entries():
        marks = [*PAPER.finditer(shows)]
        for mark, after in pairwise([*marks, None]):
            papers = (
                [mark[0]]
                if "al. (2013)" in mark[0] or "Liu" in mark[0] or "Ma" in mark[0]
                else None
            )
            papers = papers or [
                f"Barbu et al. ({year})" for year in re.findall(r"\((\d+)\)", mark[0])
            ]
            text = shows[mark.end() : after.start() if after else None]
            for paper in papers:
                for kind, number in numbered(text) | (
                    {("Table", "III")} if "III: --noisy" in text else set()
                ):
                    found.setdefault((paper, kind, number), set()).add(name)
    return found


def test_numbers_are_read():
    assert numbered("Figures 2.1, 2.3; Tables 3.1 to 3.3 and 4; Algorithm 1, (2); Figure 6(a)") == {
        *(("Figure", n) for n in ("2.1", "2.3", "6")),
        *(("Table", n) for n in ("3.1", "3.2", "3.3", "4")),
        ("Algorithm", "1"),
    }
    assert listed()["Barbu et al. (2014)", "Figure", "2"] == {"fsa-coefficients"}


@pytest.mark.parametrize("paper", PRINTED)
def test_every_printed_item_has_a_row(paper):
    rows = sections()[paper]
    expected = {(kind, str(n)) for kind, numbers in PRINTED[paper].items() for n in numbers}
    assert set().union(*(numbered(what) for what, *_ in rows)) == expected


@pytest.mark.parametrize("paper", PRINTED)
def test_named_commands_and_files_exist(paper):
    for what, where, state, names in sections()[paper]:
        for name in names:
            assert name in TABLES or name in FIGURES, f"{what}: no table or figure {name!r}"
            assert name in TABLES or f"`annealed reproduce {name} --figures DIR`" in where, (
                f"{what}: {name} is a figure only"
            )
        assert (
            names == [] or "the same with `--figures DIR`" not in where or names[-1] in FIGURES
        ), f"{what}: no figure"
        for path in re.findall(r"`([\w/]+(?:\.py|/\w+))`", where + state):
            assert (
                (ROOT / path).exists() or [*ROOT.glob(f"*/*/{path}")] or [*ROOT.glob(f"*/{path}")]
            ), f"{what}: no file {path}"


@pytest.mark.parametrize("paper", PRINTED)
def test_the_list_names_what_the_page_names(paper):
    """A table or figure with a command stands in the list with its number, and the other way
    round."""
    rows, found = sections()[paper], listed()
    built = {}
    for what, _, _, names in rows:
        for kind, number in numbered(what):
            if kind != "Algorithm" and names:
                built.setdefault((paper, kind, number), set()).update(names)
    missing = {item for item, names in built.items() if not names & found.get(item, set())}
    assert not missing, f"not in the list under the names of the page: {sorted(missing)}"
    unknown = {
        item for item in found if item[0] == paper and not found[item] & built.get(item, set())
    }
    assert not unknown, f"in the list and not on the page: {sorted(unknown)}"


def test_calls_on_the_page_name_parameters_that_exist():
    text = (ROOT / "docs" / "papers.md").read_text()
    calls = re.findall(r"\b([A-Z]\w+)\(([^()]*)\)", text)
    named = [(name, re.findall(r"(\w+)=", arguments)) for name, arguments in calls]
    named = [(name, parameters) for name, parameters in named if hasattr(learners, name)]
    assert len(named) >= 7
    for name, parameters in named:
        unknown = set(parameters) - set(signature(getattr(learners, name)).parameters)
        assert not unknown, f"{name} has no parameter {unknown}"


def test_every_table_and_figure_stands_on_a_page():
    pages = " ".join(
        path.read_text()
        for folder in ("docs", "experiments")
        for path in (ROOT / folder).rglob("*.md")
    )
    pages = re.sub(r"\s+", " ", pages)
    assert [name for name, _ in entries() if f"annealed reproduce {name}" not in pages] == []


# What holds each cell that says "as printed": paper and first words of the row -> code, test.
A14, A17, LIU, TAN, MA = PRINTED
HELD = {
    (A14, "Algorithm 1, (1)"): (
        "learners.solvers.annealing:anneal",
        "learners/solvers/test_annealing.py::test_same_support_as_plain_numpy",
    ),
    (A14, "(3), schedules"): (
        "learners.solvers.schedules:inverse_arxiv",
        "learners/solvers/test_schedules.py::test_formulas",
    ),
    (A14, "(4), (5)"): (
        "learners.objective.losses:HuberisedHingeLoss",
        "learners/objective/test_losses.py::test_printed_formulas",
    ),
    (A14, "(14)"): (
        "learners.objective.priors:Prior",
        "learners/objective/test_priors.py::test_values_by_hand",
    ),
    (A14, "(15), (16)"): (
        "learners.designs.piecewise_linear:PiecewiseDesign",
        "learners/designs/test_designs.py::test_scores_gradient_and_keep_match_the_explicit_matrix",
    ),
    (A14, "Section 7.1, pool"): (
        "vision.windows.feature_pool:FeaturePool",
        "vision/windows/test_feature_pool.py::test_size_of_the_pool",
    ),
    (A14, "Section 7.3.1"): (
        "learners.selectors.rankboost:RankBoost",
        "learners/selectors/test_rankboost.py::test_agrees_with_the_plain_algorithm",
    ),
    (A17, "Algorithm 1; (3)"): (
        "learners.solvers.schedules:inverse",
        "learners/solvers/test_schedules.py::test_formulas",
    ),
    (A17, "(8), Lorenz"): (
        "learners.objective.losses:LorenzLoss",
        "learners/objective/test_losses.py::test_printed_formulas",
    ),
    (A17, "Section 3.3"): (
        "pipelines.keypoints.measures:pooled",
        "pipelines/keypoints/test_average_precision.py::test_distance_rules",
    ),
    (LIU, "Algorithm 1, FoBa"): (
        "learners.solvers.greedy:greedy_search",
        "learners/selectors/test_selectors.py::test_a_backward_step_undoes_a_decoy",
    ),
    (LIU, "Any convex"): (
        "learners:forward_backward_minimise",
        "learners/selectors/test_convex_objective.py::test_least_squares_equals_the_estimator",
    ),
    (LIU, "Forward-gdt"): (
        "learners:ForwardBackwardRegressor",
        "learners/selectors/test_selectors.py::test_forward_steps_alone_are_orthogonal_matching_pursuit",
    ),
    (TAN, "(4) to (9)"): (
        "learners.selectors.minimax:MinimaxSparseClassifier",
        "learners/selectors/test_selectors.py::test_both_solvers_reach_the_optimum_of_the_reduced_problem",
    ),
    (TAN, "Algorithm 3"): (
        "learners.selectors.minimax_solvers:minimise_coordinate",
        "learners/selectors/test_selectors.py::test_one_coordinate_is_minimised_at_any_q",
    ),
    (TAN, "Figure 2"): (
        "annealed_experiments.figures.minimax:conditioning",
        "test_figures.py::test_figures_of_simulated_data_are_drawn",
    ),
    (MA, "(2.5)"): (
        "learners.metric_learning.sdist:SDist",
        "learners/metric_learning/test_sdist.py::test_options_of_the_thesis_run",
    ),
    (MA, "Algorithm 2.1"): (
        "learners.metric_learning.directions:truncated_power",
        "learners/metric_learning/test_sdist.py::test_options_of_the_thesis_run",
    ),
    (MA, "(2.16)"): (
        "learners.metric_learning.sdist:SDist",
        "learners/metric_learning/test_sdist.py::test_stopping_keeps_the_beginning_of_the_path",
    ),
    (MA, "Section 2.6"): (
        "learners.metric_learning.sdist:SDist",
        "learners/metric_learning/test_sdist.py::test_same_seed_same_metric_for_any_n_jobs",
    ),
    (MA, "Algorithm 3.1"): (
        "learners.online.truncated:TruncatedGradientClassifier",
        "learners/online/test_online.py::test_lazy_shrinkage_equals_eager_steps",
    ),
    (MA, "Algorithms 3.2"): (
        "learners.online.stabilised:StabilizedTruncatedSGDClassifier",
        "learners/online/test_online.py::test_stabilised_stages_equal_a_slow_reference",
    ),
    (MA, "Section 3.5"): (
        "learners.online.stabilised:StabilizedTruncatedSGDClassifier",
        "learners/online/test_online.py::test_bursts_grow_as_columns_leave",
    ),
    (MA, "(3.35)"): (
        "learners.online.truncated:RDAClassifier",
        "learners/online/test_online.py::test_lazy_shrinkage_equals_eager_steps",
    ),
    (MA, "(3.34)"): (
        "learners.stability:cohen_kappa",
        "learners/online/test_online.py::test_kappa_equals_scikit_learn",
    ),
}


def test_each_cell_that_says_as_printed_is_held_by_a_test():
    said = {
        (paper, what)
        for paper, rows in ((paper, sections()[paper]) for paper in PRINTED)
        for what, _, state, _ in rows
        if re.search("as printed", state, re.IGNORECASE)
    }
    named = {
        (paper, what)
        for paper, what in said
        for other, words in HELD
        if paper == other and what.startswith(words)
    }
    assert said == named and len(said) == len(HELD)
    for (_, what), (code, test) in HELD.items():
        module, name = code.split(":")
        assert hasattr(
            import_module(module if module.startswith("annealed_") else f"annealed.{module}"), name
        ), f"{what}: no {code}"
        file, function = test.split("::")
        assert re.search(
            rf"^def {function}\(",
            next(path for folder in TESTS if (path := folder / file).is_file()).read_text(),
            re.MULTILINE,
        ), f"{what}: no test {test}"
