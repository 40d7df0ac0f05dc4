"""Fits on sparse matrices in files equal fits on sparse matrices in memory."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from annealed.learners import FSAClassifier, FSAClassifierCV, FSARegressor, on_disk, write_csr
from annealed.learners.sources.sparse_files import SparseSource
from equal_fits import assert_same_fit
from sklearn.datasets import dump_svmlight_file

N, M = 900, 120


def _matrix(density=0.05):
    X = sp.random_array(
        (N, M), density=density, rng=np.random.default_rng(0), format="csr", dtype=np.float32
    )
    X.data += 1
    return X


def _labels(X):
    score = (X[:, [3]] + X[:, [7]] - X[:, [11]]).toarray()[:, 0]
    return score + 0.3 * np.random.default_rng(1).standard_normal(N) > 0.1


@pytest.fixture
def write(tmp_path):
    def written(X, name="X"):
        sp.save_npz(tmp_path / f"{name}.npz", X)
        return write_csr(tmp_path / f"{name}.npz", tmp_path / f"{name}.csr")

    return written


@pytest.mark.parametrize("density", [0.05, 0.3])
@pytest.mark.parametrize("limit", ["200KB", "1GB"])
def test_fits_equal_those_in_memory(write, density, limit):
    X = _matrix(density)
    y, weight = _labels(X), np.random.default_rng(2).integers(0, 3, N).astype(float)
    source = on_disk(write(X), memory_limit=limit)
    for model, target in (
        (FSAClassifier, y),
        (FSAClassifier, np.where(y, 2, np.arange(N) % 2)),
        (FSARegressor, X @ np.ones(M)),
    ):
        there, here = (
            model(3).fit(source, target, sample_weight=weight),
            model(3).fit(X, target, sample_weight=weight),
        )
        assert_same_fit(there, here)
        np.testing.assert_allclose(
            there.predict(source).astype(float), here.predict(X).astype(float), atol=1e-4
        )


def test_steps_read_only_what_remains(write, monkeypatch, tmp_path):
    """With little memory, the remaining columns go to temporary files after each halving, for rows
    in any order; a step reads these."""
    read, rows_of = [], SparseSource._rows

    def counted(self, start, stop):
        block = rows_of(self, start, stop)
        read.append(block.nnz)
        return block

    X = _matrix(0.3)
    y, rows = _labels(X), np.random.default_rng(3).permutation(N)
    source = on_disk(write(X), memory_limit="5KB")[rows]
    monkeypatch.setattr(SparseSource, "_rows", counted)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    model = FSAClassifier(4, refinement=None).fit(source, y[rows])
    assert_same_fit(model, FSAClassifier(4, refinement=None).fit(X[rows], y[rows]))
    # without temporary files each of the hundred steps would read all values
    assert 2 < sum(read) / X.nnz < 20
    assert not list((tmp_path / "temporary").iterdir())


def test_rows_sizes_and_other_processes(write):
    X = _matrix()
    y, source = _labels(X), on_disk(write(X), memory_limit="200KB")
    for rows in (np.arange(800, 100, -3), np.arange(N) % 7 == 0, slice(250, 700), [5]):
        some = pickle.loads(pickle.dumps(source[rows]))
        assert (
            some.shape == X[rows].shape and some.nnz == X[rows].nnz and some.memory_limit == 200_000
        )
        np.testing.assert_array_equal(some[:, [2, 40]], X[rows][:, [2, 40]].toarray())
    there, here = (FSAClassifierCV(sizes=[1, 2, 3, 5], cv=3).fit(data, y) for data in (source, X))
    assert there.n_features_ == here.n_features_ and (there.support_ == here.support_).all()
    np.testing.assert_allclose(there.cv_scores_, here.cv_scores_, atol=1e-6)


@pytest.mark.parametrize("zero_based", [True, False])
def test_text(tmp_path, monkeypatch, zero_based):
    monkeypatch.setattr("annealed.learners.sources.sparse_files._TEXT", 1000)
    X = _matrix()
    X = sp.csr_array(sp.hstack([np.ones((N, 1), np.float32), X[:, 1:]]))  # both ends are there
    y = _labels(X) + 1.0
    dump_svmlight_file(X, y, str(tmp_path / "X.svm"), zero_based=zero_based)
    source = write_csr(tmp_path / "X.svm", tmp_path / "X.csr")
    np.testing.assert_array_equal(source.target, y)
    np.testing.assert_array_equal(source[10:20].target, y[10:20])
    np.testing.assert_allclose(source[:, np.arange(M)], X.toarray(), rtol=1e-6)
    assert_same_fit(
        FSAClassifier(3).fit(on_disk(tmp_path / "X.csr"), source.target), FSAClassifier(3).fit(X, y)
    )
    wide = write_csr(
        tmp_path / "X.svm", tmp_path / "wide.csr", n_features=200, zero_based=zero_based
    )
    assert wide.shape == (N, 200)
    with pytest.raises(ValueError, match=r"X\.svm: .*indices .* expected"):
        write_csr(tmp_path / "X.svm", tmp_path / "narrow.csr", n_features=5)
    assert not (tmp_path / "narrow.csr").exists()


def test_bad_input(tmp_path, write):
    X = _matrix()
    sp.save_npz(tmp_path / "columns.npz", X.tocsc())
    with pytest.raises(ValueError, match=r"columns\.npz: .*format is b'csc'; expected b'csr'"):
        write_csr(tmp_path / "columns.npz", tmp_path / "a")
    (tmp_path / "cut.npz").write_bytes((tmp_path / "columns.npz").read_bytes()[:-200])
    (tmp_path / "words.svm").write_text("1 1:2 one:3\n")
    for name in ("cut.npz", "words.svm"):
        with pytest.raises(
            ValueError, match=rf"{name}: the file is damaged or not a matrix in this"
        ) as caught:
            write_csr(tmp_path / name, tmp_path / "a")
        assert "\n" not in str(caught.value) and not (tmp_path / "a").exists()
    with pytest.raises(ValueError, match=r"X\.txt: unknown file type '\.txt'"):
        (tmp_path / "X.txt").write_text("1")
        write_csr(tmp_path / "X.txt", tmp_path / "a")
    with pytest.raises(FileNotFoundError):
        write_csr(tmp_path / "gone.npz", tmp_path / "a")
    source = write(X)
    data = source.folder / "data.bin"
    data.write_bytes(data.read_bytes()[:-4])
    with pytest.raises(ValueError, match=r"X\.csr: data\.bin has .* bytes; expected"):
        on_disk(source.folder)
    X.data[5] = np.nan
    with pytest.raises(ValueError, match="NaN or infinity"):
        FSAClassifier(2).fit(write(X, "nan"), _labels(_matrix()))
