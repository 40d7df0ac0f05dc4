"""The command line ``annealed``: one module per group of commands."""

import gc
import io
import signal
import sys


def main() -> None:
    """Run the command line; the entry point of the script ``annealed``.

    An interrupt is one line and exit code 130 from the first import on; after the last output it
    changes nothing any more.
    """
    # what modules are made of stays: to look for garbage in it takes a tenth of a second
    gc.set_threshold(50_000, 20, 50)
    # names of columns and files may hold what a terminal's encoding does not
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        from . import app

        app.app()
    except (KeyboardInterrupt, SystemExit) as end:
        # while Python cleans up, the signal itself would end it
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if isinstance(end, SystemExit) and end.code != 130:  # typer's code for an interrupt
            raise
        print("annealed: interrupted", file=sys.stderr)
        # Python remembers an interrupt of code that was made of text (as dataclasses are), and
        # would raise the signal once more when it ends; code of text that ends well clears this.
        exec("")
        sys.exit(130)
