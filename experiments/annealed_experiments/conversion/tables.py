"""Conversion of classification tables: NIPS 2003, UCI, the digits of ESL, LIBSVM and newsgroups."""

from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GroupShuffleSplit, train_test_split

from ..datasets import save_set
from .files import find_file, numbers, open_file

# Number of columns of the NIPS 2003 challenge sets; rows of sparse sets contain entries
# "column:value" or the indices of columns with ones.
_N_COLUMNS = {
    "arcene": 10_000,
    "dexter": 20_000,
    "dorothea": 100_000,
    "gisette": 5_000,
    "madelon": 500,
}
_SPARSE = {"dexter", "dorothea"}
_LEUKEMIA_TRAIN = 38  # number of training patients, the first of 72 in the published order
_IONOSPHERE_TRAIN = 200  # number of training rows, the first of 351, as in the authors' split
_N_SECOM = 590
_NEWSGROUPS = {1: "comp.sys.ibm.pc.hardware", -1: "comp.sys.mac.hardware"}


def nips2003(source: Path, folder: Path, name: str) -> list[str]:
    """Convert the training part, with the validation part as the test part, because the test labels
    were never published.
    """
    parts = [_nips2003_part(source, name, part) for part in ("train", "valid")]
    save_set(folder, name, *parts)
    return [
        f"{len(parts[0][1])} training rows; the validation part ({len(parts[1][1])} rows) is the "
        "test part"
    ]


def gisette_valid(source: Path, folder: Path, name: str) -> list[str]:
    """Split the 1,000 validation rows of Gisette into 700 and 300 rows, stratified by class, for
    experiments in which the 6,000 training rows are too many.
    """
    X, y = _nips2003_part(source, "gisette", "valid")
    _save_divided(folder, name, X, y, test_size=0.3)
    return [
        "the rows were split with our own random seed, so errors differ slightly from those of "
        "other splits and of the pages"
    ]


def _save_divided(folder: Path, name: str, X, y: np.ndarray, test_size: float) -> None:
    """Save a data set with a stratified split by a fixed seed; the order of the rows is
    preserved."""
    train, test = map(
        np.sort,
        train_test_split(np.arange(len(y)), test_size=test_size, stratify=y, random_state=0),
    )
    save_set(folder, name, (X[train], y[train]), (X[test], y[test]))


def _nips2003_part(source: Path, name: str, part: str):
    path = find_file(source, f"{name}_{part}.data")
    labels = find_file(source, f"{name}_{part}.labels")
    X = (_sparse_rows if name in _SPARSE else numbers)(path, _N_COLUMNS[name])
    y = numbers(labels, 1)[:, 0].astype(int)
    if len(y) != X.shape[0] or set(y.tolist()) != {-1, 1}:
        raise ValueError(
            f"{labels}: the labels are {sorted(set(y.tolist()))[:5]} ({len(y)} in total); "
            f"expected -1 or 1 for each of the {X.shape[0]} rows"
        )
    if not sp.issparse(X) and (X.astype(np.uint16) == X).all():
        X = X.astype(np.uint16)
    return X, y


def _sparse_rows(path: Path, n_columns: int) -> sp.csr_matrix:
    """Read rows of ``column:value`` entries or of column indices, which start at 1."""
    columns, values, starts = list[int](), list[float](), [0]
    with open_file(path) as lines:
        for number, line in enumerate(lines, 1):
            for entry in line.split():
                column, _, value = entry.partition(":")
                try:
                    columns.append(int(column) - 1)
                    values.append(float(value) if value else 1.0)
                except ValueError:
                    raise ValueError(
                        f"{path}, line {number}: {entry[:40]!r} is not valid; expected "
                        "column:value or a column"
                    ) from None
                if not 0 <= columns[-1] < n_columns:
                    raise ValueError(
                        f"{path}, line {number}: column {column} is out of range; expected 1 to "
                        f"{n_columns}"
                    )
            starts.append(len(columns))
    return sp.csr_matrix(
        (np.array(values, np.float32), columns, starts), shape=(len(starts) - 1, n_columns)
    )


def ionosphere(source: Path, folder: Path, name: str) -> list[str]:
    """Convert rows of 34 numbers with the label g (good, +1) or b (bad, -1). The first 200 rows are
    the authors' training part.
    """
    path = source if source.is_file() else find_file(source, "ionosphere.data")
    classes, n = {"g": 1, "b": -1}, _IONOSPHERE_TRAIN
    table = numbers(
        path, 35, delimiter=",", converters={34: lambda word: classes.get(word.strip(), 0)}
    )
    X, y = table[:, :-1], table[:, -1]
    if len(y) <= n or not y.all():
        raise ValueError(
            f"{path}: the table has {len(y)} rows, {np.count_nonzero(y == 0)} of them without a "
            "label; expected 351 rows that end in g or b"
        )
    save_set(folder, name, (X[:n], y[:n]), (X[n:], y[n:]))
    return []


def secom(source: Path, folder: Path, name: str) -> list[str]:
    """Convert rows of 590 measurements, some of them missing, with the label pass (-1) or fail (+1)
    and a time. Our split uses three quarters of the rows for training.
    """
    X = numbers(find_file(source, "secom.data"), _N_SECOM)
    path = find_file(source, "secom_labels.data")
    with open_file(path) as lines:
        labels = [line.split()[0] for line in lines if line.strip()]
    if len(labels) != len(X) or not set(labels) <= {"-1", "1"}:
        raise ValueError(
            f"{path}: the labels are {sorted(set(labels))[:5]} ({len(labels)} in total); "
            f"expected -1 or 1 for each of the {len(X)} rows"
        )
    _save_divided(folder, name, X, np.array(labels, dtype=int), test_size=0.25)
    return ["the rows were split with our own random seed; sdist-real joins and splits them again"]


def farm_ads(source: Path, folder: Path, name: str) -> list[str]:
    """Convert the words of 4,143 advertisements, which were accepted (+1) or not (-1). In our
    split, identical rows are in the same part.
    """
    path = source if source.is_file() else find_file(source, "farm-ads-vect")
    X, y = _svmlight(path, zero_based="auto")
    if set(np.unique(y)) != {-1, 1}:
        raise ValueError(f"{path}: the labels are {np.unique(y)[:5].tolist()}; expected -1 and 1")
    X.sort_indices()
    _, same = np.unique(
        [row.indices.tobytes() + row.data.tobytes() for row in X], return_inverse=True
    )
    ((train, test),) = GroupShuffleSplit(n_splits=1, test_size=0.2, random_state=0).split(
        X, groups=same
    )
    save_set(folder, name, (X[train], y[train]), (X[test], y[test]))
    return [
        f"{len(train)} training rows, {len(test)} test rows; {len(y) - same.max() - 1} rows "
        "duplicate another"
    ]


def pcmac(source: Path, folder: Path, name: str) -> list[str]:
    """Convert word counts of two newsgroups on PC (+1) and Mac (-1) hardware, which their
    distributor split by date.
    """
    parts = {part: _newsgroups(source, f"20news-bydate-{part}") for part in ("train", "test")}
    words = CountVectorizer(dtype=np.int16).fit(parts["train"][0])
    train, test = ((words.transform(texts), labels) for texts, labels in parts.values())
    save_set(folder, name, train, test)
    return [
        f"{len(words.vocabulary_)} words of the training texts; the copy used for the pages has "
        "26,214 different words"
    ]


def _newsgroups(source: Path, part: str) -> tuple[list[str], np.ndarray]:
    texts, labels = list[str](), list[int]()
    for label, group in _NEWSGROUPS.items():
        below = [path for path in source.rglob(group) if path.is_dir() and path.parent.name == part]
        files = sorted(path for folder in below for path in folder.iterdir() if path.is_file())
        if not files:
            raise ValueError(
                f"{source}: {part}/{group} is in neither the folder nor its subfolders; "
                "expected the folders of 20news-bydate.tar.gz"
            )
        texts += [path.read_text(encoding="latin-1") for path in files]
        labels += [label] * len(files)
    return texts, np.array(labels)


def usps(source: Path, folder: Path, name: str) -> list[str]:
    """Convert rows of a digit and 256 grey values; the digits 7 (-1) and 9 (+1) are also written
    separately."""

    def rows(part: str) -> tuple[np.ndarray, np.ndarray]:
        path = find_file(source, f"zip.{part}")
        table = numbers(path, 257)
        digits = table[:, 0].astype(int)
        if not set(digits.tolist()) <= set(range(10)):
            raise ValueError(
                f"{path}: the digits are {sorted(set(digits.tolist()))[:12]}; "
                "expected 0 to 9 in the first column"
            )
        return table[:, 1:], digits

    def sevens_and_nines(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        chosen = np.isin(y, [7, 9])
        return X[chosen], np.where(y[chosen] == 9, 1, -1)

    train, test = rows("train"), rows("test")
    save_set(folder, "usps_zip", train, test, label="digit")
    save_set(folder, "usps_7v9", sevens_and_nines(*train), sevens_and_nines(*test))
    return []


def leukemia(source: Path, folder: Path, name: str) -> list[str]:
    """Convert 72 patients with 7,129 genes and the class AML (+1, the rarer one) or ALL (-1). The
    first 38 patients are the published training part.
    """
    path = source if source.is_file() else find_file(source, "ALLAML.mat", "leu")
    if path.suffix == ".mat":
        X, codes = _mat(path)
        n = _LEUKEMIA_TRAIN
        pairs = [(X[:n], codes[:n]), (X[n:], codes[n:])]
    else:
        pairs = [(X.toarray().astype(np.float32), codes) for X, codes in _libsvm_pair(path)]
    (X, y), (X_test, y_test) = pairs
    values, counts = np.unique(y, return_counts=True)
    if len(values) != 2 or X.shape[1] != X_test.shape[1]:
        raise ValueError(
            f"{path}: the classes are {values[:5].tolist()}; "
            "expected two classes of 72 patients with 7129 genes"
        )
    rare = values[counts.argmin()]
    save_set(
        folder, name, (X, np.where(y == rare, 1, -1)), (X_test, np.where(y_test == rare, 1, -1))
    )
    return []


def _mat(path: Path) -> tuple[np.ndarray, np.ndarray]:
    from scipy.io import loadmat

    try:
        content = loadmat(path)
        return np.asarray(content["X"], np.float32), np.asarray(content["Y"]).ravel()
    except (ValueError, TypeError, OSError, NotImplementedError, KeyError) as error:
        raise ValueError(
            f"{path}: the file is not a MATLAB file with X and Y "
            f"({' '.join(str(error).split())[:100]})"
        ) from None


def news20(source: Path, folder: Path, name: str) -> list[str]:
    """Convert word counts of 15,935 texts in 20 classes to X.npz and class.npy. There is no test
    part.
    """
    path = source if source.is_file() else find_file(source, "news20")
    X, y = _svmlight(path)
    sp.save_npz(folder / "X.npz", sp.csr_matrix(X))
    np.save(folder / "class.npy", y.astype(np.int8))
    return [
        f"{X.shape[0]} rows, {X.shape[1]} columns, {len(np.unique(y))} classes, without a test part"
    ]


def libsvm(source: Path, folder: Path, name: str) -> list[str]:
    """Convert any LIBSVM training file with two classes, and its test file ``NAME.t``. The larger
    label becomes +1.
    """
    if not source.is_file():
        raise ValueError(
            f"{source}: this is a folder; expected a LIBSVM file with its test file (.t) beside it"
        )
    (X, y), (X_test, y_test) = _libsvm_pair(source)
    values = np.unique(y)
    if len(values) != 2 or not set(np.unique(y_test)) <= set(values):
        raise ValueError(
            f"{source}: the labels are {values[:5].tolist()}; "
            "expected two labels, which also occur in the test file"
        )
    save_set(
        folder,
        folder.name,
        (X, np.where(y == values[1], 1, -1)),
        (X_test, np.where(y_test == values[1], 1, -1)),
    )
    return [f"{len(y)} training rows, {len(y_test)} test rows; label {values[1]:g} is +1"]


def _libsvm_pair(path: Path):
    stem = path.name.removesuffix(path.suffix) if path.suffix in (".gz", ".bz2") else path.name
    test = find_file(path, f"{stem}.t")
    (X, y), (X_test, y_test) = (_svmlight(part) for part in (path, test))
    n = max(X.shape[1], X_test.shape[1])  # a column may be zero throughout one of the files
    X.resize(X.shape[0], n)
    X_test.resize(X_test.shape[0], n)
    return (X, y), (X_test, y_test)


def _svmlight(path: Path, zero_based: bool | str = False):
    try:
        with open_file(path, "rb") as lines:
            return load_svmlight_file(lines, dtype=np.float32, zero_based=zero_based)
    except (ValueError, OSError, EOFError) as error:
        raise ValueError(
            f"{path}: the file is not a LIBSVM file ({' '.join(str(error).split())[:100]})"
        ) from None
