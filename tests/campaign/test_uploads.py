"""The local page under attack: a hundred uploads at once, and a video that is given up half-way."""

import contextlib
import io
import json
import os
import struct
import threading
import time
import zlib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from annealed.pipelines.common.video import write_video
from annealed.pipelines.keypoints.detect import sample_photograph
from helpers import Scene
from PIL import Image
from serving import family, resident, serving

httpx = pytest.importorskip("httpx")
pytestmark = pytest.mark.slow
MOST_BYTES = 2 * 2**30
MOST_SECONDS = 600  # of one answer, on a busy computer of two cores


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def bomb(side):
    """A valid PNG of side x side black pixels, made row by row."""
    packer = zlib.compressobj(9)
    row = bytes(1 + 3 * side)
    data = b"".join(packer.compress(row) for _ in range(side)) + packer.flush()
    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def encoded(pixels, kind, **options):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind, **options)
    return file.getvalue()


def uploads(tmp_path):
    """A hundred: endpoint, name, content, and the statuses that are right."""
    face = sample_photograph()
    jpeg, large = (
        encoded(face, "JPEG"),
        encoded(np.asarray(Image.fromarray(face).resize((2000, 2000))), "JPEG", quality=95),
    )
    write_video(tmp_path / "v.avi", Scene().frames(), 25.0)
    video = (tmp_path / "v.avi").read_bytes()
    huge, zeros = bomb(30_000), bytes(200_000_000)
    table = b"a,b,y\n" + b"".join(b"%d,%d,%d\n" % (i % 7, i % 5, i % 2) for i in range(200))
    kinds = [
        *[("faces", f"photograph{i}.jpg", jpeg, {200}) for i in range(22)],
        *[("faces", f"large{i}.jpg", large, {200}) for i in range(4)],
        *[("pets", f"photograph{i}.jpg", jpeg, {200}) for i in range(10)],
        *[("motion", f"video{i}.avi", video, {200}) for i in range(2)],
        *[("select", f"table{i}.csv", table, {200}) for i in range(4)],
        *[("faces", f"text{i}.jpg", b"this is text", {400}) for i in range(10)],
        *[("faces", f"truncated{i}.jpg", jpeg[: 2000 + 3000 * i], {400}) for i in range(10)],
        *[
            ("motion", f"truncated{i}.avi", video[: len(video) // (i + 2)], {200, 400})
            for i in range(4)
        ],
        *[("faces", f"bomb{i}.png", huge, {400}) for i in range(8)],
        *[("pets", f"bomb{i}.png", huge, {400}) for i in range(2)],
        *[("faces", f"zeros{i}.jpg", zeros, {413}) for i in range(4)],
        *[("select", f"zeros{i}.csv", zeros, {413}) for i in range(2)],
        *[("faces", f"video{i}.jpg", video, {400}) for i in range(4)],
        *[("motion", f"photograph{i}.npz", jpeg, {400}) for i in range(4)],
        *[("select", f"photograph{i}.csv", jpeg, {400}) for i in range(4)],
        *[("pets", f"table{i}.png", table, {400}) for i in range(4)],
        *[("knees", f"photograph{i}.jpg", jpeg, {404}) for i in range(2)],
    ]
    assert len(kinds) == 100
    return [kinds[i] for i in np.random.default_rng(0).permutation(100)]


class Watch(threading.Thread):
    """The maximum memory of a server and its workers."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.most, self.going = pid, 0, True

    def run(self):
        while self.going:
            self.most = max(self.most, resident(family(self.pid)))
            time.sleep(0.2)


def test_a_hundred_uploads_at_once(tally, tmp_path, capsys):
    sent = uploads(tmp_path)
    with serving() as (url, process):
        watch = Watch(process.pid)
        watch.start()

        def send(one):
            kind, name, content, right = one
            fields = {"target": "y"} if kind == "select" else {}
            start = time.monotonic()
            answer = httpx.post(
                f"{url}api/{kind}",
                files={"file": (name, content)},
                data=fields,
                timeout=MOST_SECONDS,
            )
            return kind, name, answer.status_code, answer.json(), time.monotonic() - start, right

        start = time.monotonic()
        with ThreadPoolExecutor(100) as threads:
            answers = list(threads.map(send, sent))
        seconds = time.monotonic() - start
        watch.going = False
        assert process.poll() is None
        status = httpx.get(f"{url}api/status").json()
        assert status["running"] == status["waiting"] == 0
        for kind, name, status, record, _, right in answers:
            good = status in right and (status == 200) == ("error" not in record)
            tally.note(
                "simultaneous uploads to `annealed serve`",
                name,
                None if good else f"{kind}: {status} {json.dumps(record)[:200]}",
            )
        with capsys.disabled():
            times = sorted(answer[4] for answer in answers)
            counts = dict(Counter(answer[2] for answer in answers))
            print(
                (
                    f"\n100 uploads: {counts}, {seconds:.0f} s in all, median {times[50]:.1f} "
                    f"s, last {times[-1]:.1f} s,"
                ),
                end=" ",
            )
            print(f"memory at most {watch.most / 2**20:.0f} MiB")
    tally.check("simultaneous uploads to `annealed serve`")
    assert watch.most < MOST_BYTES


def left_in_homes(pid):
    """Files in the folders of a server's workers."""
    result = []
    for one in family(pid):
        with contextlib.suppress(OSError):
            home = Path(f"/proc/{one}/cwd").resolve()
            result += os.listdir(home) if home.name.startswith("annealed-") else []
    return result


def test_a_video_given_up_half_way_leaves_no_process(tally, tmp_path, capsys):
    write_video(tmp_path / "v.avi", (frame for _ in range(10) for frame in Scene().frames()), 25.0)
    content = (tmp_path / "v.avi").read_bytes()
    with serving() as (url, process):
        photograph = {"file": ("a.jpg", encoded(sample_photograph(), "JPEG"))}
        httpx.post(f"{url}api/pets", files=photograph, timeout=MOST_SECONDS)
        before = family(process.pid)
        for _ in range(5):
            lines = {"Accept": "application/x-ndjson"}
            with httpx.stream(
                "POST",
                f"{url}api/motion",
                files={"file": ("v.avi", content)},
                headers=lines,
                timeout=600,
            ) as answer:
                for line in answer.iter_lines():
                    message = json.loads(line)
                    if message.get("of") and message["done"] >= message["of"] / 2:
                        break
            given_up = time.monotonic()
            while httpx.get(f"{url}api/status").json()["running"]:
                time.sleep(0.05)
                assert time.monotonic() < given_up + 60
            missing = time.monotonic() - given_up
            tally.note("videos abandoned halfway", "v.avi", None)
        # The last worker is ended, and its folder removed, just after its job counts as stopped.
        while (
            len(family(process.pid)) > len(before) or left_in_homes(process.pid)
        ) and time.monotonic() < given_up + 60:
            time.sleep(0.1)
        after = family(process.pid)
        with capsys.disabled():
            print(
                f"\n5 videos given up: {len(before)} processes before, {len(after)} after; "
                f"the last ended in {missing:.2f} s"
            )
        assert len(after) <= len(
            before
        )  # a worker that was ended is started again when it is needed
        assert not left_in_homes(process.pid)
        assert (
            httpx.post(f"{url}api/pets", files=photograph, timeout=MOST_SECONDS).status_code == 200
        )
