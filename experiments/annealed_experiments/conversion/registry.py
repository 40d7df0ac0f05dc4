"""Public data sets by name, with their downloads and converters."""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from annealed.models.files import make_folder
from annealed.pipelines.common.config import check_names


@dataclass(frozen=True)
class DataSet:
    """Public data set.

    Attributes
    ----------
    converter : str
        ``module.function`` in this package. It takes the source, the output folder and the name,
        and returns notes for the user, one line each.
    source : str
        Description of the downloaded SOURCE.
    then : str
        Command that uses the data set, with DATA for the output folder of ``convert``.
    folder : str, default ""
        Name of the output folder; the name of the data set if empty.
    """

    converter: str
    source: str
    then: str
    folder: str = ""


_RUN = "annealed reproduce"
_TABLE = f"{_RUN} public-tables --data DATA --set"
_NIPS = (
    "UCI, NIPS 2003 challenge: NAME_train.data, NAME_train.labels, NAME_valid.data, "
    "NAME_valid.labels"
)
_RANKING = "python benchmarks/ranking.py --data DATA"
_FACES = "annealed faces train --out faces.safetensors --data DATA"
_ORDONEZ = ", ".join(
    f"{home}_{kind}.txt" for home in ("OrdonezA", "OrdonezB") for kind in ("Sensors", "ADLs")
)
_LAMBDARANK = "rank.train, rank.train.query, rank.test, rank.test.query"
DATA_SETS = {
    **{
        name: DataSet("tables.nips2003", _NIPS, f"{_TABLE} {name}")
        for name in ("arcene", "dexter", "dorothea", "gisette")
    },
    "gisette_valid": DataSet(
        "tables.gisette_valid",
        "as for gisette; only its validation part, which is divided",
        f"{_TABLE} gisette_valid",
    ),
    "madelon": DataSet("tables.nips2003", _NIPS, f"{_TABLE} madelon"),
    "ionosphere": DataSet(
        "tables.ionosphere",
        "UCI: ionosphere.data",
        f"{_RUN} sdist-real --data DATA --set ionosphere",
    ),
    "secom": DataSet(
        "tables.secom",
        "UCI: secom.data, secom_labels.data",
        f"{_RUN} sdist-real --data DATA --set secom",
    ),
    "farm_ads": DataSet(
        "tables.farm_ads", "UCI: farm-ads-vect", f"{_RUN} mslr-real --data DATA --set farm_ads"
    ),
    "pcmac": DataSet(
        "tables.pcmac",
        "20news-bydate.tar.gz, unpacked",
        f"{_RUN} online-tables --data DATA --set pcmac",
    ),
    "usps": DataSet("tables.usps", "ESL's web page: zip.train.gz, zip.test.gz", f"{_TABLE} usps"),
    "leukemia": DataSet(
        "tables.leukemia",
        "ALLAML.mat of scikit-feature, or LIBSVM's leu and leu.t",
        f"{_RUN} mslr-leukemia --data DATA",
    ),
    "news20": DataSet("tables.news20", "LIBSVM: news20 or news20.bz2", ""),
    "libsvm": DataSet(
        "tables.libsvm",
        "a LIBSVM training file of two classes, its test file (NAME.t) beside it",
        f"{_TABLE} NAME",
    ),
    "mq2008": DataSet(
        "ranking.mq2008",
        "LETOR 4.0: Fold1 to Fold5, or S1.txt to S5.txt",
        _RANKING,
        "ranking_mq2008",
    ),
    "lambdarank": DataSet(
        "ranking.lambdarank",
        f"LightGBM's examples/lambdarank: {_LAMBDARANK}",
        _RANKING,
        "ranking_lambdarank",
    ),
    "hopkins155": DataSet(
        "sequences.hopkins155",
        "Hopkins155.zip, or its tree NAME/NAME_truth.mat",
        f"{_RUN} motion-table --data DATA",
    ),
    "ordonez": DataSet(
        "sequences.ordonez",
        f"UCI, ADLs with binary sensors: {_ORDONEZ}",
        f"{_RUN} sensors --data DATA",
        "sensors_adl",
    ),
    "aflw": DataSet(
        "faces.aflw",
        "AFLW: data/aflw.sqlite and the photographs below data/flickr",
        f"{_FACES}/aflw",
    ),
    "lfpw": DataSet(
        "faces.lfpw",
        "LFPW: kbvt_lfpw_v1_train.csv (or test) and the photographs that it names",
        f"{_FACES}/lfpw",
    ),
    "helen": DataSet(
        "faces.helen",
        "HELEN: annotation/1.txt ... (194 points) and the photographs",
        f"{_FACES}/helen",
    ),
}


def convert(name: str, source: str | Path, out: str | Path) -> tuple[Path, list[str]]:
    """Convert a downloaded public data set to the folder that the commands read.

    Parameters
    ----------
    name : str
        Key of ``DATA_SETS``.
    source : path
        Downloaded file, or a folder, which is searched with its subfolders.
    out : path
        Folder of the data sets, for ``--data`` or ``ANNEALED_DATA``; created if missing.

    Returns
    -------
    (Path, list of str)
        Folder written in ``out``, and notes for the user, one line each.

    Raises
    ------
    ValueError
        If the name is unknown, a file is missing or malformed, or the folder already exists. No
        partial output remains.
    """
    check_names("data set", [name], DATA_SETS)
    source, out = Path(source), Path(out)
    if not source.exists():
        raise ValueError(f"{source}: no such file or folder; expected {DATA_SETS[name].source}")
    folder = out / (
        DATA_SETS[name].folder or (source.name.split(".")[0] if name == "libsvm" else name)
    )
    if folder.exists():
        raise ValueError(
            f"{folder}: the folder already exists; choose another OUT, or remove the folder"
        )
    make_folder(out)
    module, function = DATA_SETS[name].converter.split(".")
    make: Callable[[Path, Path, str], list[str]] = getattr(
        import_module(f".{module}", __package__), function
    )
    part = out / f".{folder.name}.{os.getpid()}"
    try:
        make_folder(part)
        notes = make(source, part, name)
        part.rename(folder)
    except OSError as error:
        if error.filename is not None:
            raise
        raise ValueError(f"{folder}: the folder cannot be created ({error.strerror})") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return folder, notes
