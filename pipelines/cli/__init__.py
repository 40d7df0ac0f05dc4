"""Command line interface ``annealed``, with one module per group of commands."""

import gc
import io
import signal
import sys


def main() -> None:
    """Run the command line; this is the entry point of the script ``annealed``.

    An interrupt during a command prints one line and exits with code 130. After the last output,
    an interrupt has no effect.
    """
    # module contents are never garbage, and collecting them takes a tenth of a second
    gc.set_threshold(50_000, 20, 50)
    # the terminal may not be able to encode the names of columns and files
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        from . import app

        app.app()
    except (KeyboardInterrupt, SystemExit) as end:
        # during cleanup, another interrupt would end Python
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        # typer exits with code 130 after an interrupt
        if isinstance(end, SystemExit) and end.code != 130:
            raise
        print("annealed: interrupted", file=sys.stderr)
        # Python remembers an interrupt in code compiled from text (as in dataclasses) and would
        # raise the signal again on exit. Running more code compiled from text clears this state.
        exec("")
        sys.exit(130)
