"""Commands in processes that are forked after all imports: what is killed or fails is their own
work."""

import multiprocessing
import os
import resource
import sys
from inspect import signature
from pathlib import Path

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(
    [
        *("annealed.pipelines.cli.app", "annealed.models.keypoints.detector", "commands"),
        *("cv2", "matplotlib.pyplot", "pandas", "pyarrow.parquet", "sklearn.linear_model"),
    ]
)


class Command:
    """A command that runs; files that it writes have at most ``limit`` bytes, as on a full disk."""

    def __init__(self, arguments, limit=None):
        self._output, theirs = _FORKS.Pipe(duplex=False)
        self.process = _FORKS.Process(target=_call, args=([*map(str, arguments)], theirs, limit))
        self.process.start()
        theirs.close()

    def end(self):
        """Exit code and output, after the end of the command."""
        text = b"".join(iter(lambda: os.read(self._output.fileno(), 65536), b""))
        self.process.join()
        return self.process.exitcode, text.decode(errors="replace")

    def kill(self, seconds):
        """Kill the command after some seconds."""
        self.process.join(seconds)
        self.process.kill()
        self.process.join()


def _call(arguments, output, limit):
    from annealed.pipelines.cli import main

    for number in (1, 2):
        os.dup2(output.fileno(), number)
    output.close()
    sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
    sys.argv = ["annealed", *arguments]
    if limit is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    try:
        main()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def leaves(command, names=()):
    """Names and command of each command of a group, as pairs."""
    below = getattr(command, "commands", {})
    return [one for name, part in below.items() for one in leaves(part, (*names, name))] or [
        (names, command)
    ]


def path_options():
    """Arguments and options that are paths, as pairs of the command and ``--option``."""
    from annealed.pipelines.cli.app import app
    from typer.main import get_command

    return [
        (" ".join(names), option.opts[0])
        for names, command in leaves(get_command(app))
        for option in command.params
        if Path.__name__ in str(_annotations(command).get(option.name))
    ]


def _annotations(command):
    parameters = signature(command.callback, eval_str=True).parameters
    return {name: parameter.annotation for name, parameter in parameters.items()}
