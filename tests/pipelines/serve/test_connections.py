"""Connections that never finish asking: they are closed, and others are answered meanwhile."""

import asyncio
import contextlib
import socket
import threading

import pytest

uvicorn = pytest.importorskip("uvicorn")
from annealed.pipelines.serve import connections  # noqa: E402

FINISHED = b"GET / HTTP/1.1\r\nHost: localhost\r\n"


async def application(scope, receive, send):
    while (await receive()).get("more_body"):
        pass
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]}
    )
    await send({"type": "http.response.body", "body": b"ok"})


@contextlib.contextmanager
def running(limit):
    """Port of a server in a thread."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    config = uvicorn.Config(
        application,
        http=connections.BoundedConnection,
        log_level="error",
        lifespan="off",
        limit_concurrency=limit,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])))
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


@pytest.fixture
def connect():
    with contextlib.ExitStack() as stack:
        yield lambda port: stack.enter_context(socket.create_connection(("127.0.0.1", port), 60))


def test_half_open_connections_do_not_stay(monkeypatch, connect):
    monkeypatch.setattr(connections, "HEAD_SECONDS", 1.0)
    with running(512) as port:
        halves = [connect(port) for _ in range(300)]
        for half in halves[::2]:  # the others say nothing at all
            half.sendall(FINISHED)
        whole = connect(port)
        whole.sendall(FINISHED + b"\r\n")
        assert whole.recv(1000).startswith(b"HTTP/1.1 200")
        slow = connect(port)  # a body may take longer than a head
        slow.sendall(b"POST" + FINISHED[3:] + b"Content-Length: 1\r\n\r\n")
        assert [half.recv(1) for half in halves] == [b""] * len(halves)
        slow.sendall(b"x")
        assert slow.recv(1000).startswith(b"HTTP/1.1 200")


def test_the_second_request_of_a_connection_must_be_finished_too(monkeypatch, connect):
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.2)
    with running(512) as port:
        one = connect(port)
        one.sendall(FINISHED + b"\r\n")
        assert one.recv(1000).startswith(b"HTTP/1.1 200")
        one.sendall(FINISHED)
        while content := one.recv(1000):  # the rest of the first answer
            assert content == b"ok"


def test_connections_beyond_the_limit_are_closed(connect):
    with running(2) as port:
        first = [connect(port) for _ in range(2)]
        with contextlib.suppress(ConnectionResetError):
            assert connect(port).recv(1) == b""
        assert len(first) == 2
