"""The server of ``annealed serve``: endpoints, refusals, cancellation."""

import base64
import contextlib
import io
import json
import socket
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from annealed.pipelines.common import image_folders
from annealed.pipelines.serve.answers.fields import Fields
from annealed.pipelines.serve.answers.limits import LIMITS, RequestError
from annealed.pipelines.serve.uploads import plain_name
from helpers import Scene, picture, rigid_motions, run
from PIL import Image
from serving import family, serving

httpx = pytest.importorskip("httpx")
LINES = {"Accept": "application/x-ndjson"}


@pytest.fixture(scope="module")
def server():
    with (
        serving("--workers", "1") as (url, process),
        httpx.Client(base_url=url, timeout=300) as client,
    ):
        yield client, process


@pytest.fixture
def client(server):
    return server[0]


def png(width=64, height=48):
    file = io.BytesIO()
    Image.fromarray(picture("ring", 0, (height, width))).save(file, "PNG")
    return file.getvalue()


def ask(client, kind, name, content, headers=None, **fields):
    return client.post(
        f"/api/{kind}", files={"file": (name, content)}, data=fields, headers=headers or {}
    )


def in_files(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    return tmp_path / name


def printed(tmp_path, monkeypatch, *command):
    monkeypatch.chdir(tmp_path)
    return json.loads(run(*command, "--json").stdout)


def test_faces_answers_as_the_command(client, tmp_path, monkeypatch):
    found = ask(client, "faces", "a.png", png()).json()
    in_files(tmp_path, "a.png", png())
    expected = printed(tmp_path, monkeypatch, "faces", "detect", "a.png")
    assert found.pop("seconds") > 0 and expected.pop("seconds") > 0
    assert found == expected


def test_uploads_that_stop_keep_no_worker(client):
    head = (
        "POST /api/faces HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n"
        "Content-Type: multipart/form-data; boundary=x\r\n\r\n--x\r\n"
    )
    with contextlib.ExitStack() as stack:
        for _ in range(150):
            address = client.base_url.host, client.base_url.port
            half = stack.enter_context(socket.create_connection(address, 60))
            half.sendall(head.encode())
        assert client.get("/api/status").json()["waiting"] == 0
        assert ask(client, "pets", "a.png", png()).status_code == 200


def test_pets_answers_as_the_command(client, tmp_path, monkeypatch):
    in_files(tmp_path, "a.png", png())
    assert ask(client, "pets", "a.png", png()).json() == printed(
        tmp_path, monkeypatch, "pets", "classify", "a.png"
    )


def test_motion_answers_as_the_command(client, tmp_path, monkeypatch):
    tracks = io.BytesIO()
    np.savez(tracks, tracks=rigid_motions()[0])
    in_files(tmp_path, "two.npz", tracks.getvalue())
    found = ask(client, "motion", "two.npz", tracks.getvalue(), motions="2").json()
    assert found == printed(tmp_path, monkeypatch, "motion", "segment", "two.npz", "--motions", "2")


def test_select_answers_as_the_command(client, tmp_path, monkeypatch):
    x = np.random.default_rng(0).normal(size=(60, 5)).round(3)
    table = "a,b,c,d,y\n" + "".join(",".join(map(str, row)) + "\n" for row in x)
    in_files(tmp_path, "t.csv", table.encode())
    found = ask(
        client, "select", "t.csv", table.encode(), target="y", k="2", exclude=["a", "c"]
    ).json()
    options = ("--target", "y", "-k", "2", "--exclude", "a", "--exclude", "c")
    expected = printed(tmp_path, monkeypatch, "select", "t.csv", *options)
    assert found.pop("seconds").keys() == expected.pop("seconds").keys()
    assert found == expected


def test_pictures_and_report_come_on_request(client):
    evidence = ask(client, "pets", "a.png", png(), evidence="true").json()["evidence"]
    assert evidence["heat"].startswith("data:image/png;base64,") and evidence["contributions"]
    assert (
        ask(client, "faces", "a.png", png(), picture="true")
        .json()["picture"]
        .startswith("data:image/jpeg;base64,")
    )
    table = client.get("/samples/breast_cancer.csv").content
    found = ask(client, "select", "t.csv", table, target="diagnosis", k="2", report="true").json()
    assert found["report"].startswith("<!doctype html>")


def test_the_files_of_the_commands_come_on_request(client, tmp_path, monkeypatch):
    from annealed.pipelines.keypoints.detect import sample_photograph

    photograph = io.BytesIO()
    Image.fromarray(sample_photograph()[:256, 100:356]).save(photograph, "PNG")
    in_files(tmp_path, "a.png", photograph.getvalue())
    answer = ask(
        client, "faces", "a.png", photograph.getvalue(), files="true", landmarks="true"
    ).json()
    archive = zipfile.ZipFile(io.BytesIO(base64.b64decode(answer["files"].partition(",")[2])))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(image_folders, "MAX_FEW", -1)  # the same loops as the server's
    options = ("--out", "t.csv", "--coco", "c.json", "--crops", "crops", "--landmarks")
    assert run("faces", "detect", "a.png", *options).exit_code == 0
    assert archive.namelist() == ["a_face1.png", "faces.csv", "faces.json"]
    for name, written in (
        ("faces.csv", "t.csv"),
        ("faces.json", "c.json"),
        ("a_face1.png", "crops/a_face1.png"),
    ):
        assert archive.read(name) == Path(written).read_bytes()
    tracks = io.BytesIO()
    np.savez(tracks, tracks=rigid_motions()[0])
    answer = ask(client, "motion", "two.npz", tracks.getvalue(), motions="2", files="true").json()
    archive = zipfile.ZipFile(io.BytesIO(base64.b64decode(answer["files"].partition(",")[2])))
    assert "tracks.csv" in archive.namelist() and not any(
        name.endswith(".png") for name in archive.namelist()
    )


def test_frames_of_a_camera_know_their_persons(client):
    from annealed.pipelines.keypoints.detect import sample_photograph

    photograph = io.BytesIO()
    Image.fromarray(sample_photograph()[:256, 100:356]).save(photograph, "PNG")
    for session in "ab":
        for time_ in ("0", "0.1", "0.2"):
            found = ask(
                client, "camera", "f.png", photograph.getvalue(), session=session, time=time_
            ).json()
            assert [face["person"] for face in found["faces"]] == [1]
    early = ask(client, "camera", "f.png", photograph.getvalue(), session="b", time="0.1")
    assert early.status_code == 400 and "expected a time later than 0.2" in early.json()["error"]
    missing = ask(client, "camera", "f.png", photograph.getvalue())
    assert (
        missing.status_code == 400
        and missing.json()["error"]
        == "the field time is missing; expected the time of this frame in seconds"
    )


def test_progress_comes_in_lines(client):
    table = client.get("/samples/breast_cancer.csv").content
    lines = [
        json.loads(line)
        for line in ask(
            client, "select", "t.csv", table, LINES, target="diagnosis", k="2"
        ).text.splitlines()
    ]
    assert lines[0]["step"] == "reading the table" and lines[-1]["n_columns"] == 2
    assert any(line.get("of") == 5 for line in lines[:-1])


def test_a_video_is_answered_with_its_frames(client, tmp_path):
    from annealed.pipelines.common.video import write_video

    write_video(tmp_path / "v.avi", Scene().frames(), 25.0)
    found = ask(
        client, "motion", "v.avi", (tmp_path / "v.avi").read_bytes(), motions="3", frames="true"
    ).json()
    shown = found["shown"]
    assert len(shown["pictures"]) == len(shown["frames"]) == 30 and (
        shown["width"],
        shown["height"],
    ) == (320, 240)
    assert len(shown["points"]) == len(shown["motions"]) and set(shown["motions"]) == {0, 1, 2}


def test_what_the_detector_selected(client):
    found = client.get("/api/features").json()
    assert found["window"] == 24 and set(found["features"]) >= {"left_eye", "right_mouth"}
    for one in found["features"]["left_eye"]:
        assert all(
            x >= 0 and x + w <= 24 and y >= 0 and y + h <= 24 for x, y, w, h, _ in one["cells"]
        )


@pytest.mark.parametrize(
    "kind, name, content, fields, status, message",
    [
        ("faces", "a.jpg", b"text", {}, 400, "a.jpg: the file is not a readable image"),
        ("faces", "a.jpg", b"", {}, 400, "a.jpg: the file is empty"),
        ("faces", "a.png", png()[:200], {}, 400, "a.png: the image is damaged"),
        (
            "faces",
            "a.png",
            png(),
            {"min_size": "big"},
            400,
            "min_size='big' is not valid; expected a number",
        ),
        (
            "faces",
            "a.png",
            png(),
            {"colour": "red"},
            400,
            "field 'colour' is unknown; expected one of keypoint",
        ),
        ("faces", "a.png", png(), {"keypoint": "knee"}, 400, "keypoint 'knee' is unknown"),
        ("pets", "../../b.png", b"text", {}, 400, "b.png: the file is not a readable image"),
        (
            "pets",
            "a.png",
            png(),
            {"evidence": "perhaps"},
            400,
            "evidence='perhaps' is not valid; expected true or false",
        ),
        ("motion", "a.avi", b"text", {}, 400, "a.avi: the file cannot be read as a video"),
        ("motion", "a.npz", b"text", {}, 400, "a.npz: the file is not a readable npz file"),
        (
            "motion",
            "a.npz",
            b"text",
            {"motions": "0"},
            400,
            "motions 0 is not valid; expected an integer >= 1",
        ),
        (
            "select",
            "a.csv",
            b"a,b\n1,2\n",
            {"target": "c"},
            400,
            "a.csv: column 'c' for the target does not exist",
        ),
        (
            "select",
            "a.xls",
            b"",
            {"target": "c"},
            400,
            "a.xls: unsupported file type; expected .csv",
        ),
        (
            "select",
            "a.csv",
            b"a,b\n1,2\n",
            {"target": "b", "task": "x"},
            400,
            "task='x' is unknown; expected one of auto",
        ),
        (
            "knees",
            "a.png",
            png(),
            {},
            404,
            "'knees' is unknown; expected one of faces, camera, motion, pets, select",
        ),
    ],
)
def test_bad_input_is_one_line(client, kind, name, content, fields, status, message):
    answer = ask(client, kind, name, content, **fields)
    assert answer.status_code == status and answer.json()["error"].startswith(message)


def test_too_many_pixels_are_not_decoded(client):
    side = int(LIMITS["faces"].pixels ** 0.5) + 1
    file = io.BytesIO()
    Image.new("1", (side, side)).save(file, "PNG")
    for kind in ("faces", "pets"):
        answer = ask(client, kind, "a.png", file.getvalue())
        assert (
            answer.status_code == 400
            and answer.json()["error"]
            == f"a.png: the image is {side} x {side} pixels; expected at most 25 million pixels"
        )


def test_an_array_that_needs_too_much_memory_is_refused_and_the_server_goes_on(client):
    bomb = io.BytesIO()
    with (
        zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("tracks.npy", "w", force_zip64=True) as member,
    ):
        header = (
            b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000, 62500, 2), }".ljust(117)
            + b"\n"
        )
        member.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
        for _ in range(1000):
            member.write(bytes(1_000_000))
    answer = ask(client, "motion", "a.npz", bomb.getvalue())
    assert answer.status_code == 413 and "memory" in answer.json()["error"]
    assert ask(client, "pets", "a.png", png()).status_code == 200


def test_too_large_files_are_refused(client):
    answer = ask(client, "faces", "a.jpg", bytes(LIMITS["faces"].bytes + 1))
    assert (
        answer.status_code == 413
        and answer.json()["error"] == "the file is too large; expected at most 32 MiB"
    )
    parts = (bytes(1_000_000) for _ in range(40))  # without its length
    head = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.jpg"\r\n\r\n'
    content = (part for source in ([head], parts) for part in source)
    answer = client.post(
        "/api/faces", content=content, headers={"Content-Type": "multipart/form-data; boundary=x"}
    )
    assert answer.status_code == 413


@pytest.mark.parametrize("content", [b"", b"--x\r\nnonsense", b"no form at all"])
def test_what_is_no_form_is_refused(client, content):
    answer = client.post(
        "/api/faces", content=content, headers={"Content-Type": "multipart/form-data; boundary=x"}
    )
    assert answer.status_code == 400 and "form" in answer.json()["error"]
    assert client.post("/api/faces", content=b"a").status_code == 415
    assert client.post("/api/faces", data={"threshold": "1"}, files={}).status_code == 415


def test_other_sites_may_not_ask(client):
    for headers in (
        {"Host": "evil.example"},
        {"Host": ""},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
    ):
        answer = ask(client, "pets", "a.png", png(), headers)
        assert answer.status_code in (400, 403) and (
            answer.status_code == 400 or "expected" in answer.json()["error"]
        )
    assert ask(client, "pets", "a.png", png(), {"Sec-Fetch-Site": "cross-site"}).status_code == 403
    own = f"http://{client.base_url.host}:{client.base_url.port}"
    assert ask(client, "pets", "a.png", png(), {"Origin": own}).status_code == 200


def test_the_page_allows_nothing_from_elsewhere(client):
    answer = client.get("/")
    assert (
        answer.status_code == 200
        and "default-src 'none'" in answer.headers["Content-Security-Policy"]
    )
    static = Path(__file__).resolve().parents[3] / "pipelines" / "serve" / "static"
    for path in static.iterdir():
        text = path.read_text()
        assert client.get(f"/{path.name}").text == text
        assert "https:" not in text and text.count("http:") == text.count(
            "http://www.w3.org/2000/svg"
        )
    assert client.get("/../app.py").status_code == 404


def workers(process):
    """Processes below the server by the memory that they have; the helpers of multiprocessing
    stay."""
    return family(process.pid)


def test_a_request_that_is_given_up_ends_its_process(server):
    client, process = server
    video = client.get("/samples/moving.avi").content
    ask(client, "pets", "a.png", png())
    before = workers(process)
    with client.stream(
        "POST", "/api/motion", files={"file": ("moving.avi", video)}, headers=LINES
    ) as answer:
        for line in answer.iter_lines():
            if json.loads(line).get("done"):
                break
    end = time.monotonic() + 60
    while (now := workers(process)) == before or len(now) != len(before):
        assert time.monotonic() < end, "the worker goes on"
        time.sleep(0.1)
    assert len(before - now) == 1
    assert ask(client, "pets", "a.png", png()).status_code == 200


def test_nothing_is_kept(server):
    client, process = server
    ask(client, "pets", "secret.png", png())
    for pid in family(process.pid):
        home = Path(f"/proc/{pid}/cwd").resolve()
        assert not home.name.startswith("annealed-") or not list(home.iterdir())


def test_nothing_remains_when_it_ends():
    with serving("--workers", "1") as (url, process):
        assert httpx.get(f"{url}samples/breast_cancer.csv", timeout=300).status_code == 200
        pids = family(process.pid)
        homes = {
            home
            for pid in pids
            if (home := Path(f"/proc/{pid}/cwd").resolve()).name.startswith("annealed-")
        }
        assert len(pids) > 2 and len(homes) == 1
    assert process.returncode == 0
    end = time.monotonic() + 30
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        assert time.monotonic() < end, "a process remains"
        time.sleep(0.1)
    assert not any(home.exists() for home in homes)


def test_workers_end_with_a_server_that_is_killed():
    with serving("--workers", "1") as (url, process):
        assert httpx.get(f"{url}samples/breast_cancer.csv", timeout=300).status_code == 200
        pids = family(process.pid) - {process.pid}
        homes = {
            home
            for pid in pids
            if (home := Path(f"/proc/{pid}/cwd").resolve()).name.startswith("annealed-")
        }
        process.kill()
        end = time.monotonic() + 30
        while any(Path(f"/proc/{pid}").exists() for pid in pids):
            assert time.monotonic() < end, "a process remains"
            time.sleep(0.1)
    for home in homes:
        home.rmdir()


def test_bad_options_are_one_line():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        for options, message in (
            (("--port", port), f"port {port} ("),
            (("--port", 70000), "--port 70000 is not valid; expected an integer from 0 to 65535"),
            (("--workers", 0), "--workers 0 is not valid; expected an integer >= 1"),
            (("--host", "no.such.host.invalid"), "no.such.host.invalid, port 8000"),
        ):
            result = run("serve", *options)
            assert result.exit_code == 2 and message in result.stderr


@pytest.mark.parametrize(
    "name, plain",
    [
        ("a.png", "a.png"),
        ("../../etc/passwd", "passwd"),
        ("C:\\photos\\cat.jpg", "cat.jpg"),
        ("", "upload"),
        ("..", "upload"),
        (".hidden.csv", "hidden.csv"),
        ("a\nb\0.npz", "a_b_.npz"),
        ("ü" * 300 + ".csv", "ü" * 30 + ".csv"),
    ],
)
def test_names_are_plain(name, plain):
    assert plain_name(name) == plain


def test_fields():
    fields = Fields({"a": ["1.5"], "b": ["x", "", "y"], "c": ["TRUE"]}, ["a", "b", "c", "d"])
    assert fields.number("a") == 1.5 and fields.number("d") is None and fields.text("b") == "y"
    assert fields.listed("b") == ["x", "y"] and fields.flag("c") and not fields.flag("d")
    assert fields.choice("d", ("p", "q")) == "p"
    with pytest.raises(ValueError, match=r"a='1\.5' is not valid; expected true or false"):
        fields.flag("a")
    with pytest.raises(ValueError, match="b='y' is unknown; expected one of p, q"):
        fields.choice("b", ("p", "q"))
    assert RequestError(503, "busy").status == 503
