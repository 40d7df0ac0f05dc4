"""Command line ``annealed``, with one module per group of commands."""

import gc
import io
import signal
import sys


def main() -> None:
    """Run the command line; this is the entry point of the script ``annealed``.

    After the first import, an interrupt prints one line and exits with code 130; after the last
    output, it has no effect.
    """
    # module contents are never garbage: collecting them takes a tenth of a second
    gc.set_threshold(50_000, 20, 50)
    # names of columns and files may not be encodable on the terminal
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        from . import app

        app.app()
    except (KeyboardInterrupt, SystemExit) as end:
        # during cleanup, the signal itself would end Python
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if isinstance(end, SystemExit) and end.code != 130:  # typer's code for an interrupt
            raise
        print("annealed: interrupted", file=sys.stderr)
        # Python remembers an interrupt in code compiled from text (as in dataclasses), and would
        # raise the signal again on exit; running further code compiled from text clears this.
        exec("")
        sys.exit(130)
