"""Photographs, tracks and pictures on a Dask cluster: the same answers as in this process, whatever
happens to the workers."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import types

import numpy as np
import pytest
from annealed.pipelines.common.file_map import by_dask, by_processes
from annealed.pipelines.keypoints import forms
from annealed.pipelines.keypoints.detect import sample_photograph
from helpers import picture, rigid_motions, run
from PIL import Image

distributed = pytest.importorskip("distributed", reason="needs annealed[dask]")


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(
        2, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit="1GB"
    ) as result:
        yield result


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Parts of the sample photograph, a file of several frames and one that is no picture."""
    folder = tmp_path_factory.mktemp("photographs")
    (folder / "in").mkdir()
    face = sample_photograph()[20:220, 120:320]
    for i in range(5):
        Image.fromarray(np.roll(face, 9 * i, axis=1)).save(folder / "in" / f"{i}.png")
    Image.fromarray(face).save(
        folder / "in" / "a.tif", save_all=True, append_images=[Image.fromarray(face[::-1])]
    )
    (folder / "in" / "bad.png").write_bytes(b"no picture")
    return folder


def detect(*arguments):
    return run("faces", "detect", "in", "--json", *arguments)


def die(model, item):
    os.kill(os.getpid(), signal.SIGKILL)


def answers(result):
    """All but the time that each took."""
    return (
        result.exit_code,
        result.stderr,
        [json.loads(line) | {"seconds": 0} for line in result.stdout.splitlines()],
    )


@pytest.fixture(scope="module")
def whole(folder):
    """The answer and the table of this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return answers(detect("--out", "whole.csv")), (folder / "whole.csv").read_bytes()


def processes(cluster):
    with distributed.Client(cluster, set_as_default=False) as client:
        return list(client.run(os.getpid).values())


def test_photographs_on_a_cluster(cluster, folder, whole, monkeypatch):
    monkeypatch.chdir(folder)
    files = ("--out", "dask.csv", "--coco", "dask.json", "--crops", "crops")
    assert answers(detect("--dask", cluster.scheduler_address, *files)) == whole[0]
    assert (folder / "dask.csv").read_bytes() == whole[1]
    assert whole[0][0] == 1 and "bad.png" in whole[0][1] and "has 2 frames" in whole[0][1]


def test_a_killed_worker(cluster, folder, whole, monkeypatch):
    monkeypatch.chdir(folder)
    victims, add = processes(cluster)[:1], forms.Finished.add

    def killing(self, record):
        add(self, record)
        if self.n == 2:
            os.kill(victims[0], signal.SIGKILL)

    monkeypatch.setattr(forms.Finished, "add", killing)
    result = detect("--dask", cluster.scheduler_address, "--out", "killed.csv")
    assert answers(result) == whole[0] and (folder / "killed.csv").read_bytes() == whole[1]
    assert victims[0] not in processes(cluster)


def test_a_scheduler_that_goes_away(folder, whole, monkeypatch):
    """One line; what was finished is kept, and --resume goes on without it."""
    monkeypatch.chdir(folder)
    start = [sys.executable, "-m"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    where = ["--scheduler-file", folder / "scheduler.json"]
    options = [
        "distributed.cli.dask_scheduler",
        "--host",
        "127.0.0.1",
        "--port",
        "0",
        "--no-dashboard",
        *where,
    ]
    scheduler = subprocess.Popen([*start, *options], **quiet)
    options = [
        "distributed.cli.dask_worker",
        *where,
        "--nthreads",
        "1",
        "--memory-limit",
        "1GB",
        "--no-dashboard",
        "--no-nanny",
    ]
    worker = subprocess.Popen([*start, *options], **quiet)
    try:
        while not (folder / "scheduler.json").exists():
            time.sleep(0.1)
        address = json.loads((folder / "scheduler.json").read_text())["address"]
        add = forms.Finished.add

        def killing(self, record):
            add(self, record)
            if self.n == 2:
                scheduler.kill()
                scheduler.wait()

        with monkeypatch.context() as patch:
            patch.setattr(forms.Finished, "add", killing)
            stopped = detect("--dask", address, "--out", "stopped.csv")
    finally:
        for process in (scheduler, worker):
            process.kill()
            process.wait()
    assert stopped.exit_code == 2 and not (folder / "stopped.csv").exists()
    assert (
        f"annealed: --dask {address}: the connection to the scheduler was lost"
        in stopped.stderr.splitlines()[-1]
    )
    assert len((folder / "stopped.csv.unfinished").read_bytes().splitlines()) == 3
    again = detect("--out", "stopped.csv", "--resume")
    assert answers(again)[2] == whole[0][2] and (folder / "stopped.csv").read_bytes() == whole[1]


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nonsense", "", "foo://x:1"])
def test_a_wrong_address_is_one_line(folder, address, monkeypatch):
    monkeypatch.chdir(folder)
    result = detect("--dask", address)
    assert result.exit_code == 2 and result.stderr.count("\n") == 1
    assert (
        f"--dask {address}: no scheduler responds" in result.stderr
        and "tcp://host:8786" in result.stderr
    )


def test_what_listens_and_is_no_scheduler_is_one_line(cluster, folder, monkeypatch):
    """Something that says nothing, and a worker: an error within seconds."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr("annealed.pipelines.common.file_map.TIMEOUT", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        worker = next(iter(cluster.workers.values())).worker_address
        for address, why in (
            (f"tcp://127.0.0.1:{silent.getsockname()[1]}", "no response within 1 seconds"),
            (worker, "this address belongs to a Worker"),
        ):
            result = detect("--dask", address)
            assert result.exit_code == 2 and result.stderr.count("\n") == 1
            assert f"--dask {address}: no scheduler responds ({why})" in result.stderr


def test_options_that_do_not_go_together(folder, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "x.mp4").touch()
    for arguments, message in (
        (("faces", "detect", "in", "--dask", "tcp://x:1", "--jobs", 2), "--jobs 2"),
        (("faces", "detect", "x.mp4", "--dask", "tcp://x:1"), "pass photographs"),
        (
            ("motion", "segment", "x.mp4", "--dask", "tcp://x:1", "--out", "t.csv"),
            "--out t.csv",
        ),
    ):
        result = run(*arguments)
        assert result.exit_code == 2 and message in result.stderr and result.stderr.count("\n") == 1


def test_tracks_on_a_cluster(cluster, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for seed in range(2):
        np.savez(f"{seed}.npz", tracks=rigid_motions(seed=seed)[0])
    (tmp_path / "bad.npz").write_bytes(b"no tracks")
    options = ("motion", "segment", "0.npz", "bad.npz", "1.npz", "--motions", 2, "--json")
    one, two, dask = (
        run(*options, *more) for more in ((), ("--jobs", 2), ("--dask", cluster.scheduler_address))
    )
    assert one.exit_code == 1 and one.stdout.count("labels") == 2 and "bad.npz" in one.stderr
    assert (one.stdout, one.stderr) == (two.stdout, two.stderr) == (dask.stdout, dask.stderr)


def test_pictures_in_classes_on_a_cluster(cluster, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for i, label in enumerate(["ring", "cross"] * 5):
        (tmp_path / "data" / label).mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture(label, i)).save(tmp_path / "data" / label / f"{i}.png")
    lines = ["image,label,head_xmin,head_ymin,head_xmax,head_ymax", "cross/bad.png,cross,,,,"]
    lines += [
        f"{label}/{i}.png,{label},{'20,10,80,70' if i < 8 else ',,,'}"
        for i, label in enumerate(["ring", "cross"] * 5)
    ]
    (tmp_path / "data" / "labels.csv").write_text("\n".join(lines))
    trained = []
    for i, more in enumerate(((), ("--jobs", 2), ("--dask", cluster.scheduler_address))):
        result = run(
            "pets",
            "train",
            "--data",
            "data",
            "--out",
            f"{i}.safetensors",
            "--words",
            30,
            "--select",
            20,
            *more,
        )
        trained.append(
            (result.exit_code, result.stderr, (tmp_path / f"{i}.safetensors").read_bytes())
        )
    assert (
        trained[0] == trained[1] == trained[2]
        and trained[0][0] == 1
        and trained[0][1].count("bad.png") == 1
    )
    (tmp_path / "0.safetensors").rename("m.safetensors")
    images = ["data/ring/0.png", "x.png", "data/cross/1.png", "data/ring/2.png"]
    options = ("pets", "classify", *images, "--model", "m.safetensors", "--json")
    one, two, dask = (
        run(*options, *more)
        for more in (
            (),
            ("--jobs", 2),
            ("--dask", cluster.scheduler_address, "--overlay", "evidence"),
        )
    )
    assert one.exit_code == 1 and one.stdout.count("label") == 3 and one.stderr.count("x.png") == 1
    assert (one.stdout, one.stderr) == (two.stdout, two.stderr) == (dask.stdout, dask.stderr)
    assert len(list((tmp_path / "evidence").iterdir())) == 3


def test_errors_wait_for_their_turn(cluster):
    for file_map in (by_processes(), by_processes(2), by_dask(cluster.scheduler_address)):
        results = file_map(int.__floordiv__, 12, iter([3, 4, 0, 5]))
        assert [next(results), next(results)] == [4, 3]
        with pytest.raises(ZeroDivisionError):
            next(results)


def test_what_a_worker_cannot_do_is_one_line(cluster, monkeypatch):
    here = types.ModuleType("a_module_of_the_client")
    exec("def work(model, item): return item", here.__dict__)
    monkeypatch.setitem(sys.modules, here.__name__, here)
    file_map = by_dask(cluster.scheduler_address)
    with pytest.raises(
        ValueError,
        match=r"--dask tcp.*ModuleNotFoundError: No module named 'a_module_of_the_client'$",
    ):
        list(file_map(here.work, 1, [2]))
    cluster.scheduler.allowed_failures = 0
    with pytest.raises(ValueError, match=r"--dask tcp.*KilledWorker: .*"):
        list(file_map(die, 1, [2]))
    with pytest.raises(ValueError, match="n_jobs=0"):
        by_processes(0)
