"""What a request may cost, and how it is refused: numbers that are choices, for a page on one's
computer."""

from dataclasses import dataclass

MIB = 2**20
# of a worker process: detection in a photograph of 25 million pixels takes 600 MiB
MEMORY = 896 * MIB
PREPARE_SECONDS = 900.0  # to load a model, and to compile what it needs, once
WAIT_SECONDS = 120.0  # for a turn
UPLOAD_SECONDS = 60.0  # for a file to arrive
MAX_WAITING = 128  # requests that wait; the next one is refused
FIELD_BYTES = 10_000  # of a form's field


@dataclass(frozen=True)
class Limit:
    """What one kind of request may cost: bytes of the file, pixels of a picture, frames of a video,
    seconds of work."""

    bytes: int
    seconds: float
    pixels: int = 0
    frames: int = 0


LIMITS = {
    "faces": Limit(32 * MIB, 120.0, pixels=25_000_000),
    "camera": Limit(8 * MIB, 30.0, pixels=4_000_000),
    "pets": Limit(32 * MIB, 60.0, pixels=25_000_000),
    "motion": Limit(64 * MIB, 300.0, pixels=4_000_000, frames=600),
    "select": Limit(32 * MIB, 300.0),
    "label": Limit(64 * MIB, 120.0, pixels=50_000_000),
    "features": Limit(0, 60.0),
    "sample": Limit(0, 60.0),
}


class RequestError(Exception):
    """A request that gets no answer: an HTTP status, and one line that says why."""

    def __init__(self, status: int, message: str):
        # both: an exception comes out of a process by its arguments
        super().__init__(status, message)
        self.status, self.message = status, message

    def __str__(self) -> str:
        return self.message
