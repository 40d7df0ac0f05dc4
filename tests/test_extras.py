"""What works without the extras, and what is said where one is missing."""

import subprocess
import sys
import textwrap

import pytest

WITHOUT = "cv2", "PIL", "skimage", "matplotlib"  # what the extra `vision` brings


def run_without(script, folder):
    """Run a script in a fresh interpreter in which the extra `vision` is not installed."""
    hidden = f"import sys\nsys.modules.update(dict.fromkeys({WITHOUT!r}))\n"
    done = subprocess.run(
        [sys.executable, "-c", hidden + textwrap.dedent(script)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_learners_and_tables_need_no_extra(tmp_path):
    out = run_without(
        """
        import numpy as np, annealed.learners as learners
        for name in learners.__all__:
            getattr(learners, name)
        X = np.random.default_rng(0).standard_normal((200, 8))
        y = X[:, 2] - X[:, 5]
        model = learners.FSARegressor(2).fit(X, y)
        header = ",".join("abcdefghy")
        np.savetxt("table.csv", np.column_stack([X, y]), delimiter=",", header=header, comments="")
        from annealed.models import TabularModel, list_models, load_model
        TabularModel.from_estimator(model).save("m.safetensors")
        load_model("m.safetensors").predict(X)
        from annealed_experiments.tables.sensors_simulation import simulate_home
        simulate_home(2, 60)
        from typer.testing import CliRunner
        from annealed.pipelines.cli.app import app
        line = "select table.csv --target y -k 2 --report report --quiet"
        chosen = CliRunner().invoke(app, line.split())
        assert chosen.exit_code == 0, chosen.output
        assert CliRunner().invoke(app, ["models", "list"]).exit_code == 0
        print(*model.get_support(indices=True))
        """,
        tmp_path,
    )
    assert out.split() == ["2", "5"] and (tmp_path / "report" / "select.html").is_file()


def test_a_missing_package_is_one_line_that_names_the_extra(tmp_path):
    out = run_without(
        """
        from typer.testing import CliRunner
        from annealed.pipelines.cli.app import app
        open("a.png", "w").close()
        for line in ("faces detect", "faces detect a.png --json", "motion segment a.npz",
                     "pets classify a.png", "warmup faces", "models show faces --json"):
            done = CliRunner().invoke(app, line.split())
            said = "pip install '.[vision]' in the annealed checkout" in done.stderr
            print(done.exit_code, done.stderr.count("\\n"), said, line, sep="|")
        try:
            import annealed.vision
        except ModuleNotFoundError as error:
            print(error)
        """,
        tmp_path,
    ).splitlines()
    assert out[-1] == (
        "reading images, videos and tracks requires OpenCV; run "
        "pip install '.[vision]' in the annealed checkout"
    )
    for line in out[:-2]:
        assert line.startswith("2|1|True|"), line
    assert out[-2].startswith("0|0|")  # the header of a model is numbers and text


@pytest.mark.parametrize(
    "what",
    ["plots.plot_schedule(100, 5)", "selection_stability(FSARegressor(1), X, X[:, 0], 2).plot()"],
)
def test_plots_name_their_extra(what, tmp_path):
    out = run_without(
        f"""
        import numpy as np
        from annealed.learners import plots, selection_stability, FSARegressor
        X = np.random.default_rng(0).standard_normal((60, 4))
        try:
            {what}
        except ModuleNotFoundError as error:
            print(error)
        """,
        tmp_path,
    )
    assert (
        out.strip()
        == "plots require matplotlib; run pip install '.[plots]' in the annealed checkout"
    )
