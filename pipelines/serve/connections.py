"""Connections of ``annealed serve``, which are closed if a request is not completed in time."""

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

#: Timeout for the head of a request (heuristic).
HEAD_SECONDS = 15.0


class BoundedConnection(H11Protocol):
    """Uvicorn connection that is closed if the header of a request takes too long to arrive.

    It is closed immediately if there are more than ``limit_concurrency`` connections.
    """

    timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self.limit_concurrency is not None and len(self.connections) > self.limit_concurrency:
            transport.abort()  # file descriptors are limited, and each worker needs one more
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self.timer is not None:
            self.timer.cancel()

    def _watch(self) -> None:
        """Run the timer only while a request head is expected."""
        if self.conn.their_state is not h11.IDLE:
            if self.timer is not None:
                self.timer.cancel()
            self.timer = None
        elif self.timer is None:
            self.timer = self.loop.call_later(HEAD_SECONDS, self.transport.close)
