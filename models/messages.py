"""Messages of one line."""

MAX_MESSAGE = 300  # characters of an error line


def short(message: object) -> str:
    """Return a message as one line of at most ``MAX_MESSAGE`` characters; the middle of a longer
    one is left out."""
    line = " ".join(str(message).split())
    return line if len(line) <= MAX_MESSAGE else f"{line[: MAX_MESSAGE - 105]} ... {line[-100:]}"
