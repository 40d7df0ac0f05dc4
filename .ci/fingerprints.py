"""Add the seeds, and the fingerprint of the code at the commit of the run, to the stored results
that lack them: ``python .ci/fingerprints.py`` in a checkout with its history."""

import io
import json
import subprocess
import tarfile
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from annealed_experiments.provenance import Sources, of_checkout, seeds_of, write


def complete(results: Path, sources_at: Callable[[str], Sources]) -> list[str]:
    """Complete the runs in a folder of results files, and return the commands without known code.

    Parameters
    ----------
    results : path
        Folder of the results files.
    sources_at : callable
        Returns the sources of a commit.
    """
    unknown = []
    for file in sorted(results.glob("*.json")):
        text = file.read_text(encoding="utf-8")
        record = json.loads(text)
        for run in record["made"]:
            if run.get("fingerprint") is None:
                run["fingerprint"] = sources_at(run["commit"]).fingerprint(run["command"])
            run.setdefault("seeds", seeds_of(run.get("settings") or record.get("settings", {})))
            if run["fingerprint"] is None:
                unknown.append(f"{file.stem}: {run['command']}")
        if record != json.loads(text):
            write(file, record)
    return unknown


def main() -> None:
    """Complete ``experiments/results``."""
    with tempfile.TemporaryDirectory() as name:

        @cache
        def sources_at(commit: str) -> Sources:
            archive = subprocess.run(
                ["git", "archive", commit], check=True, stdout=subprocess.PIPE
            ).stdout
            folder = Path(name) / commit
            with tarfile.open(fileobj=io.BytesIO(archive)) as files:
                files.extractall(folder, filter="data")
            return of_checkout(folder)

        for line in complete(Path("experiments/results"), sources_at):
            print(f"no code is known for {line}")


if __name__ == "__main__":
    main()
