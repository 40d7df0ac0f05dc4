"""The services of examples/cluster/compose.yaml, started as processes in place of containers: its
commands, its number of workers, its limits of memory."""

import json
import os
import re
import shlex
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers import run

yaml = pytest.importorskip("yaml", reason="needs annealed[dask]")
ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "examples" / "cluster" / "compose.yaml"


@pytest.fixture(scope="module")
def services():
    return yaml.safe_load(FILE.read_text())["services"]


def test_the_image_holds_the_package(services):
    lines = services["scheduler"]["build"]["dockerfile_inline"].splitlines()
    context = (FILE.parent / services["scheduler"]["build"]["context"]).resolve()
    copied = [name for line in lines if line.startswith("COPY") for name in line.split()[1:-1]]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needed = {
        name.split(".")[1] for name in project["tool"]["setuptools"]["packages"] if "." in name
    }
    assert context == ROOT and all((ROOT / name).exists() for name in copied)
    assert needed | {"pyproject.toml", "__init__.py", project["project"]["readme"]} <= {*copied}
    (extras,) = re.findall(r"\.\[(.*)\]", "".join(lines))
    assert {*extras.split(",")} <= project["project"]["optional-dependencies"].keys()


def test_every_service_has_a_limit_and_the_same_image_and_folder(services):
    assert all(service["mem_limit"] in ("1g", "2g") for service in services.values())
    assert len({(service["image"], *service["volumes"]) for service in services.values()}) == 1
    assert services["worker"]["deploy"]["replicas"] == 3


@pytest.mark.slow
def test_its_commands_select_columns_in_limited_memory(services, tmp_path):
    pytest.importorskip("distributed", reason="needs annealed[dask]")
    pytest.importorskip("pyarrow", reason="needs annealed[parquet]")
    rng = np.random.default_rng(0)
    (tmp_path / "big").mkdir()
    for part in range(6):  # 0.3 GB of numbers
        frame = pd.DataFrame(
            rng.standard_normal((30_000, 200)), columns=[f"c{j}" for j in range(200)]
        )
        frame["y"] = frame["c3"] - frame["c7"] + rng.standard_normal(len(frame))
        frame.to_parquet(tmp_path / "big" / f"{part}.parquet")
    start, processes = [sys.executable, "-m", "dask"], []

    def begin(command, *more):
        with (tmp_path / "log").open("ab") as log:
            processes.append(
                subprocess.Popen(
                    [*start, *shlex.split(command)[1:], *more], stdout=log, stderr=log, cwd=tmp_path
                )
            )
        return processes[-1]

    try:
        command = (
            services["scheduler"]["command"]
            .replace("0.0.0.0", "127.0.0.1")
            .replace(" 8786", " 0")
            .replace(":8787", ":0")
        )
        begin(command, "--scheduler-file", "s.json")
        while not (tmp_path / "s.json").exists():
            assert processes[0].poll() is None, (tmp_path / "log").read_text()
            time.sleep(0.1)
        address = json.loads((tmp_path / "s.json").read_text())["address"]
        command = services["worker"]["command"].replace("tcp://scheduler:8786", address)
        for _ in range(services["worker"]["deploy"]["replicas"]):
            begin(command)
        from distributed import Client

        with Client(address, set_as_default=False) as client:
            client.wait_for_workers(3, timeout=60)
            words = (
                "select",
                tmp_path / "big",
                "--target",
                "y",
                "-k",
                2,
                "--memory-limit",
                "20MB",
                "--json",
            )
            found = run(*words, "--dask", address)
            assert found.exit_code == 0, found.stderr
            assert {c["name"] for c in json.loads(found.stdout)["selected"]} == {"c3", "c7"}
            status = [
                Path(f"/proc/{pid}/status").read_text() for pid in client.run(os.getpid).values()
            ]
        peaks = [int(re.search(r"VmHWM:\s+(\d+) kB", text)[1]) << 10 for text in status]
        assert len(peaks) == 3 and max(peaks) < 1 << 30
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()
