"""Hostile requests to ``annealed serve``: about a gigabyte by default, run once per release.

    python benchmarks/serve_hostile.py [--megabytes 1000]

Every kind of request is repeated until the bytes are sent, while an honest request is timed
repeatedly. The script prints the responses by kind, the peak memory of the server with its workers
and the slowest honest response, and exits with 1 if a response is a 500 or unexpected, if an honest
request fails, or if the server has logged a traceback.
"""

import contextlib
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections import Counter, defaultdict
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
from common import new_parser
from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
from serving import family, resident

MIB = 2**20


def form(name, content, *more):
    """Return the body and content type of a form with one file and other fields."""
    parts = [b'Content-Disposition: form-data; name="file"; filename="%s"\r\n\r\n%s']
    parts = [parts[0] % (name, content), *more]
    body = b"".join(b"--x\r\n" + part + b"\r\n" for part in parts) + b"--x--\r\n"
    return body, "multipart/form-data; boundary=x"


def field(name, value):
    return b'Content-Disposition: form-data; name="%s"\r\n\r\n%s' % (name, value)


def bomb():
    """Return an archive whose array expands to 400 MB of zeros."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        head = io.BytesIO()
        np.lib.format.write_array_header_1_0(
            head, {"descr": "<f8", "fortran_order": False, "shape": (50_000, 1000)}
        )
        archive.writestr("tracks.npy", head.getvalue() + bytes(400_000_000))
    return out.getvalue()


def kinds(rng):
    """Return for each name the method, path, body, content type and the expected statuses."""
    label = "PUT", "/api/label/0"
    objects = b'{"objects": [{"keypoints": {"head": [%s, 1, 2]}}]}'
    target = field(b"target", b"y")
    return {
        "nested JSON": (*label, (b"[" * 3 * MIB, "application/json"), {400}),
        "number of 3 million digits": (*label, (objects % (b"9" * 3 * MIB), "text/json"), {400}),
        "5 MiB of labels": (*label, (b" " * 5 * MIB, "text/json"), {413}),
        "random bytes as a photograph": (
            *("POST", "/api/faces"),
            form(b"a.jpg", rng.bytes(20 * MIB)),
            {400},
        ),
        "60 MiB": ("POST", "/api/pets", form(b"a.png", bytes(60 * MIB)), {413}),
        "a table of one line": (
            *("POST", "/api/select"),
            form(b"a.csv", b"a," * 10 * MIB, target),
            {400, 413, 504},
        ),
        "an archive of 400 MB": ("POST", "/api/motion", form(b"a.npz", bomb()), {400, 413}),
        "10,000 fields": (
            *("POST", "/api/faces"),
            form(b"a.jpg", b"", *[field(b"keypoint", b"x")] * 10_000),
            {400, 413},
        ),
        "a field of 10 MB": (
            *("POST", "/api/select"),
            form(b"a.csv", b"a,y\n1,2\n", field(b"target", b"y" * 10_000_000)),
            {400, 413},
        ),
        "no form": ("POST", "/api/faces", (rng.bytes(MIB), "image/jpeg"), {415}),
        "a path of 30 kB": ("POST", "/api/" + "x" * 30_000, form(b"a", b""), {400, 404}),
    }


def ask(address, method, path, body, kind, timeout=600):
    """Return the status of a request; 0 if the server closed the connection."""
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n"
    with socket.create_connection(address, timeout) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        with contextlib.suppress(ConnectionError):
            return int((connection.recv(4096).split(b" ") + [b"0", b"0"])[1] or 0)
    return 0


def main(argv: list[str] | None = None) -> None:
    """Start a server, send the requests and print the responses."""
    parser = new_parser(__doc__)
    parser.add_argument("--megabytes", type=int, default=1000)
    megabytes = parser.parse_args(argv).megabytes
    with tempfile.TemporaryDirectory() as place, contextlib.ExitStack() as stack:
        folder, log = Path(place) / "images", Path(place) / "log"
        folder.mkdir()
        Image.new("RGB", (64, 48)).save(folder / "a.png")
        (folder / "schema.toml").write_text('category = "x"\nkeypoints = ["head", "tail"]\n')
        command = [sys.executable, "-m", "annealed.pipelines.cli", "serve", "--port", "0"]
        server = subprocess.Popen(
            [*command, "--label", str(folder)],
            stdout=subprocess.PIPE,
            stderr=log.open("wb"),
            text=True,
            env={**os.environ, "ANNEALED_QUIET": "1"},
        )
        stack.callback(server.wait, 60)
        stack.callback(server.send_signal, signal.SIGINT)
        url = urlsplit(re.search(r"http://\S+", server.stdout.readline())[0])
        address = url.hostname, url.port
        honest = form(b"a.png", (folder / "a.png").read_bytes())
        assert ask(address, "POST", "/api/pets", *honest) == 200  # compiles
        half = b"POST /api/faces HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999999\r\n"
        half += b"Content-Type: multipart/form-data; boundary=x\r\n\r\n--x\r\n"
        for _ in range(200):  # these stop half-way, at the beginning of the attack
            stack.enter_context(socket.create_connection(address, 60)).sendall(half)
        answers, memory, slowest, sent = defaultdict(Counter), 0, 0.0, 0
        honest_answers, done = Counter(), threading.Event()

        def watch():
            nonlocal memory, slowest
            while not done.is_set():
                start = time.monotonic()
                honest_answers[ask(address, "POST", "/api/pets", *honest)] += 1
                slowest = max(slowest, time.monotonic() - start)
                memory = max(memory, resident(family(server.pid)))

        watcher = threading.Thread(target=watch)
        watcher.start()
        every, wrong = kinds(np.random.default_rng(0)), []
        while sent < megabytes * 1e6:
            for name, (method, path, body, right) in every.items():
                status = ask(address, method, path, *body)
                answers[name][status] += 1
                sent += len(body[0])
                wrong += [f"{name}: {status}"] if status not in right else []
        done.set()
        watcher.join()
        print(f"{sent / 1e6:.0f} MB sent, memory at most {memory / MIB:.0f} MiB")
        print(f"valid requests: {dict(honest_answers)}, the slowest took {slowest:.1f} s")
        for name, counts in answers.items():
            print(f"{name}: {json.dumps(counts)}")
        wrong += [f"valid requests: {dict(honest_answers)}"] if set(honest_answers) != {200} else []
        wrong += ["a traceback in the log"] if b"Traceback" in log.read_bytes() else []
        sys.exit("\n".join(wrong) or None)


if __name__ == "__main__":
    main()
