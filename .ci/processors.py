"""Tests under other, simulated processors: the selection of a fit must not depend on the machine.

    python .ci/processors.py [--laws] [arguments of pytest]

OpenBLAS, NumPy, numba and the C library each choose code by the processor and round differently
with it. All four are forced to use other code here.

Without ``--laws``: tests/learners, tests/vision and tests/models, or what the arguments name, under
every setting, with one thread and with two. With ``--laws``: under one setting that is not this
host's, in about a minute, the laws of the learners (weights are repetitions, permutations,
invariance, equal designs, scikit-learn's checks of weights). Both first compare fits: the same
features on every processor, and the same scores but for rounding. A setting that this host cannot
execute is skipped with a line. The exit code is 1 where anything fails.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ["tests/learners", "tests/vision", "tests/models"]
# Words in the names of tests that compare two fits expected to be equal.
LAWS = (
    "check_sample_weight or invariance or permut or repetition or repeated or weight_of_two or "
    "equal or agree "
    "or sparse_and_dense or the_same_metric or explicit_matrix or any_number_of_threads or "
    "does_not_change_the_support"
)
# of scores, relative to the largest of a fit: a choice, far below what a table shows
ROUNDING = 1e-6


@dataclass
class Processor:
    """One setting of the four libraries."""

    name: str  # of the kernels of OpenBLAS
    needs: str  # a feature that the host must have
    hidden: tuple[str, ...]  # prefixes of the features that NumPy must not use
    target: str  # of numba
    hidden_from_c: str = ""  # features that the mathematical functions of glibc must not use

    def environment(self, dispatched: list[str]) -> dict[str, str]:
        """The variables; NumPy warns of every feature that it does not dispatch on or that the host
        lacks."""
        return {
            "OPENBLAS_CORETYPE": self.name,
            "NPY_DISABLE_CPU_FEATURES": " ".join(
                feature for feature in dispatched if feature.startswith(self.hidden)
            ),
            "NUMBA_CPU_NAME": self.target,
            "NUMBA_CPU_FEATURES": "",  # those of the target, not the host's
            "GLIBC_TUNABLES": f"glibc.cpu.hwcaps={self.hidden_from_c}"
            if self.hidden_from_c
            else "",
        }


PROCESSORS = [
    Processor("Nehalem", "SSE42", ("",), "generic", "-AVX512F,-AVX2,-FMA,-AVX2_Usable,-FMA_Usable"),
    Processor("Haswell", "AVX2", ("AVX512", "X86_V4"), "haswell"),
    Processor("Zen", "AVX2", ("AVX512", "X86_V4"), "znver2"),
    Processor("SkylakeX", "AVX512_SKX", ("AVX512_ICL", "AVX512_SPR"), "skylake-avx512"),
]
PROBE = """
import json, numpy, scipy.linalg, threadpoolctl
from numpy._core._multiarray_umath import __cpu_dispatch__ as dispatched, __cpu_features__ as features
kernels = {d["architecture"] for d in threadpoolctl.threadpool_info() if d["internal_api"] == "openblas"}
print(json.dumps([sorted(kernels), [name for name in dispatched if features[name]], [name for name in features if features[name]]]))
"""


def probe(variables: dict[str, str]) -> tuple[list[str], list[str], list[str]]:
    """Kernels of OpenBLAS, features that NumPy dispatches on, and all features, as used under these
    variables."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=True,
    )
    kernels, dispatched, features = json.loads(done.stdout)
    return kernels, dispatched, features


def executable() -> list[tuple[Processor, dict[str, str]]]:
    """Settings that this host can execute; a line for every other one."""
    _, dispatched, host = probe({})
    settings = []
    for processor in PROCESSORS:
        if processor.needs not in host:
            print(f"{processor.name}: skipped, this host has no {processor.needs}")
            continue
        variables = processor.environment(dispatched)
        kernels, *_ = probe(variables)
        if kernels == [processor.name]:
            settings.append((processor, variables))
        else:
            print(
                f"{processor.name}: skipped, OpenBLAS takes the kernels of "
                f"{', '.join(kernels) or 'nothing'} for it"
            )
    return settings


def fits(variables: dict[str, str]) -> dict[str, dict]:
    """Selections and predictions of fits of every kind under these variables, with one thread."""
    command = [sys.executable, str(ROOT / ".ci" / "fits.py")]
    return json.loads(
        subprocess.run(
            command, env=os.environ | threads(1) | variables, stdout=subprocess.PIPE, check=True
        ).stdout
    )


def differences(ours: dict[str, dict], theirs: dict[str, dict]) -> list[str]:
    """Fits that select other features, or whose scores differ by more than rounding: a line for
    each."""
    lines = []
    for name, fit in ours.items():
        scores, others = np.array(fit["scores"]), np.array(theirs[name]["scores"])
        largest = np.abs(scores - others).max() / np.abs(scores).max()
        if fit["selected"] != theirs[name]["selected"]:
            lines.append(f"{name}: selects {theirs[name]['selected']}, here {fit['selected']}")
        elif largest > ROUNDING:
            lines.append(f"{name}: the scores differ by {largest:.1e} of the largest")
    return lines


def threads(number: int) -> dict[str, str]:
    """The variables for a number of threads."""
    return dict.fromkeys(
        ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), str(number)
    )


def passes(
    processor: Processor, variables: dict[str, str], number: int, arguments: list[str]
) -> bool:
    """Whether the tests pass under a setting with a number of threads."""
    shown = " ".join(
        f"{name}='{value}'" for name, value in (variables | threads(number)).items() if value
    )
    print(f"-- {processor.name}: {shown}", flush=True)
    processes = max(1, min(4, (os.cpu_count() or 1) // number))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-rfE",
        "-n",
        str(processes),
        "--dist",
        "loadfile",
        *arguments,
    ]
    return (
        subprocess.run(command, cwd=ROOT, env=os.environ | threads(number) | variables).returncode
        == 0
    )


def main() -> int:
    """Run the requested tests."""
    arguments = sys.argv[1:]
    settings, numbers, folders = executable(), [1, 2], FOLDERS
    if "--laws" in arguments:
        arguments.remove("--laws")
        arguments += ["-k", LAWS]
        native, _, host = probe({})
        foreign = "Haswell" if "AVX512_SKX" in host and native != ["Haswell"] else "Nehalem"
        settings = [setting for setting in settings if setting[0].name == foreign]
        numbers, folders = [1], FOLDERS[:1]
    if not any((ROOT / argument.split("::")[0]).exists() for argument in arguments):
        arguments += folders
    ours, failed = fits({}), []
    for processor, variables in settings:
        if lines := differences(ours, fits(variables)):
            failed.append("\n".join([f"fits under {processor.name}", *lines]))
    for number in numbers:
        for processor, variables in settings:
            if not passes(processor, variables, number, arguments):
                failed.append(f"tests under {processor.name}, threads: {number}")
    names = ", ".join(processor.name for processor, _ in settings)
    print(
        "\n".join(["failed:", *failed])
        if failed
        else f"passed under {names or 'no other processor: none can be simulated here'}"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
