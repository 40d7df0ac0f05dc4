"""Base class for the sparse Fourier estimators: chains and fitted attributes."""

from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed
from scipy.sparse import coo_matrix, csr_matrix
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..compilation import jit
from ..parameters import (
    check_choice,
    check_declared,
    check_integer,
    check_jobs,
    check_parameters,
    check_real,
    checked,
)
from ..types import Matrix, Seed
from .bank import anneal_bank, polished
from .chains import (
    GAUSSIAN,
    LOGISTIC,
    NAMES,
    AtomPrior,
    Chain,
    ChainSamples,
    Table,
    atom_features,
    effective_sample_size,
    r_hat,
    run_chain,
    screen,
)
from .description import ROWS_AT_ONCE, AtomFeatures
from .rows import Standardiser, correlated_groups


@jit
def mean_scores(kept: ChainSamples, XT: np.ndarray, squash: bool) -> np.ndarray:
    """Average the scores of each row over the posterior samples.

    If ``squash`` is set, the logistic function of the score is averaged instead.
    """
    n = XT.shape[1]
    total, one = np.zeros(n), np.zeros(n)
    phase, features = np.zeros(n), np.zeros((2, n))
    for s in range(len(kept.size)):
        one[:] = kept.coef[s, 0]
        for l in range(kept.size[s]):
            atom_features(
                kept.columns[s, l], kept.omega[s, l], kept.length[s, l], XT, phase, features
            )
            a, b = kept.coef[s, 1 + 2 * l], kept.coef[s, 2 + 2 * l]
            for i in range(n):
                one[i] += a * features[0, i] + b * features[1, i]
        for i in range(n):
            total[i] += 1.0 / (1.0 + np.exp(-one[i])) if squash else one[i]
    return total / len(kept.size)


def atoms_in_use(kept: ChainSamples) -> tuple[np.ndarray, np.ndarray]:
    """Return, for every atom, the index of its sample and its position in that sample."""
    sample, place = np.nonzero(np.arange(kept.length.shape[1]) < kept.size[:, None])
    return sample, place


def columns_in_use(kept: ChainSamples, n_columns: int) -> csr_matrix:
    """Return a 0/1 matrix, of shape (n_samples, n_columns), of the columns used in each sample."""
    sample, place = atoms_in_use(kept)
    inside = np.arange(kept.columns.shape[2]) < kept.length[sample, place][:, None]
    columns = kept.columns[sample, place][inside]
    used = coo_matrix(
        (np.ones(len(columns)), (np.repeat(sample, inside.sum(axis=1)), columns)),
        shape=(len(kept.size), n_columns),
    )
    used = used.tocsr()
    used.data[:] = 1.0
    return used


def transition_counts(kept: ChainSamples, n_columns: int) -> csr_matrix:
    """Compute the mean transition counts per sample, a square matrix with 1 + n_columns rows.

    State 0 is the start and the end of an atom, and state j + 1 is column j.
    """
    sample, place = atoms_in_use(kept)
    columns, length = kept.columns[sample, place], kept.length[sample, place]
    state = np.where(np.arange(columns.shape[1]) < length[:, None], columns + 1, 0)
    path = np.column_stack([np.zeros(len(state), np.int64), state, np.zeros(len(state), np.int64)])
    steps = np.arange(path.shape[1] - 1) <= length[:, None]
    start, end = path[:, :-1][steps], path[:, 1:][steps]
    return coo_matrix(
        (np.full(len(start), 1.0 / len(kept.size)), (start, end)),
        shape=(n_columns + 1, n_columns + 1),
    ).tocsr()


MAX_KEPT = 250  # maximum number of stored samples per chain


@dataclass(eq=False, repr=False, kw_only=True)
class SparseFourierBase(AtomFeatures):
    """Base class for estimators that run chains over sparse frequencies for each output."""

    solver: str = checked("mcmc", check_choice, ("mcmc", "annealed", "annealed+mcmc"))
    n_steps: int = checked(20000, check_integer, 1)
    burn_in: int | None = None
    n_chains: int = checked(2, check_integer, 1)
    max_components: int = checked(40, check_integer, 1)
    expected_components: float = checked(5.0, check_real, 0.0, above=True)
    ridge: float = checked(1.0, check_real, 0.0, above=True)
    group_correlation: float = checked(0.5, check_real, 0.0, 1.0, above=True)
    max_samples: int | None = checked(10_000, check_integer, 1, unless=(None,))
    random_state: Seed = None
    n_jobs: int | None = None

    def _check_parameters(self) -> None:
        check_declared(self)
        check_parameters(check_integer, self, ("burn_in",), 0, self.n_steps - 1, unless=(None,))
        check_jobs(self.n_jobs)

    def _fit_outputs(self, X: np.ndarray, targets: np.ndarray, likelihood: int) -> None:
        """Run the chains for each column of ``targets`` (n_samples, n_outputs)."""
        self._standardiser = Standardiser.of(X)
        prior = self._prior(len(self._standardiser.usable), self.expected_components)
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        streams = iter(np.random.SeedSequence(seed).spawn(1 + targets.shape[1] * self.n_chains))
        rows = self._some_rows(np.random.default_rng(next(streams)), len(X))
        XT = self._standardiser.columns(X[rows])
        groups = np.full(X.shape[1], -1)  # -1: the group of constant columns
        groups[self._standardiser.usable] = correlated_groups(XT, self.group_correlation)
        self.groups_ = np.unique(groups, return_inverse=True)[1]
        jobs = []
        for target in targets.T:
            table = screen(XT, target[rows], self.frequency_scale, self.screening, prior.max_order)
            jobs += [(target, table, next(streams)) for _ in range(self.n_chains)]

        def one(target: np.ndarray, table: Table, stream: np.random.SeedSequence) -> Chain:
            rng = np.random.default_rng(stream)
            rows = self._some_rows(rng, len(X))
            values = XT if len(rows) == len(X) else self._standardiser.columns(X[rows])
            return self._chain(likelihood, values, target[rows], prior, table, rng)

        runs = Parallel(n_jobs=self.n_jobs, prefer="threads")(delayed(one)(*job) for job in jobs)
        self._chains: list[list[Chain]] = [
            runs[i : i + self.n_chains] for i in range(0, len(runs), self.n_chains)
        ]
        self._kept = [
            ChainSamples(*map(np.concatenate, zip(*(chain.kept for chain in chains))))
            for chains in self._chains
        ]
        self._describe_columns(X.shape[1])
        self._describe_atoms(X.shape[1])
        self._describe_chains()

    def _chain(
        self,
        likelihood: int,
        XT: np.ndarray,
        target: np.ndarray,
        prior: AtomPrior,
        table: Table,
        rng: np.random.Generator,
    ) -> Chain:
        precision = float(self.ridge)
        most = self.max_components if len(XT) else 0
        start = None
        if self.solver != "mcmc" and len(XT):
            deviation = target.std()
            standard = (target - target.mean()) / (deviation if deviation > 0 else 1.0)
            wanted = (
                self.n_components if self.solver == "annealed" else min(self.n_components, most)
            )
            sizes = {"n_components": wanted, "n_bank": self.n_bank, "n_rounds": self.n_rounds}
            start = anneal_bank(XT, standard[:, None], prior, [table], rng, **sizes)
            if self.solver == "annealed":
                return polished(likelihood, XT, target, prior, table, rng, start, precision)
        burn_in = self._burn_in()
        return run_chain(
            likelihood,
            XT,
            target,
            prior,
            table,
            rng,
            max_components=most,
            precision=precision,
            n_steps=self.n_steps,
            burn_in=burn_in,
            n_kept=min(MAX_KEPT, self.n_steps - burn_in),
            start=start,
        )

    def _burn_in(self) -> int:
        return self.n_steps // 2 if self.burn_in is None else self.burn_in

    def _describe_columns(self, n_features: int) -> None:
        usable = self._standardiser.usable
        used = [columns_in_use(kept, len(usable)) for kept in self._kept]
        self.inclusion_probabilities_ = np.zeros(n_features)
        self.inclusion_probabilities_[usable] = 1.0 - np.prod(
            [1.0 - u.mean(axis=0).A1 for u in used], axis=0
        )
        each = [
            columns_in_use(chain.kept, len(usable)).mean(axis=0).A1
            for chains in self._chains
            for chain in chains
        ]
        self.chain_inclusion_probabilities_ = np.zeros((len(each), n_features))
        self.chain_inclusion_probabilities_[:, usable] = each
        n_groups = self.groups_.max() + 1
        member = csr_matrix(
            (np.ones(len(usable)), (np.arange(len(usable)), self.groups_[usable])),
            shape=(len(usable), n_groups),
        )
        none = [1.0 - ((u @ member) > 0).mean(axis=0).A1 for u in used]
        self.group_inclusion_probabilities_ = 1.0 - np.prod(none, axis=0)
        counts = sum(transition_counts(kept, len(usable)) for kept in self._kept).tocoo()
        state = np.concatenate([[0], usable + 1])
        self.transition_counts_ = csr_matrix(
            (counts.data, (state[counts.row], state[counts.col])),
            shape=(n_features + 1, n_features + 1),
        )

    def _describe_chains(self) -> None:
        self.n_components_ = np.array(
            [[chain.kept.size for chain in chains] for chains in self._chains]
        )
        self.traces_ = np.array([[chain.trace for chain in chains] for chains in self._chains])
        tried, accepted = np.sum(
            [(chain.tried, chain.accepted) for chains in self._chains for chain in chains], axis=0
        )
        self.acceptance_ = {
            name: float(a / max(t, 1)) for name, a, t in zip(NAMES, accepted, tried)
        }
        n_traced = self.traces_.shape[2]
        late = self.traces_[:, :, -(-self._burn_in() * n_traced // self.n_steps) :]
        self.r_hat_, self.effective_sample_size_ = {}, {}
        for i, name in enumerate(("log_likelihood", "n_components")):
            self.r_hat_[name] = max(r_hat(traces) for traces in late[..., i])
            self.effective_sample_size_[name] = min(
                effective_sample_size(traces) for traces in late[..., i]
            )
        if self.solver == "annealed":  # no chains
            self.r_hat_ = dict.fromkeys((*self.r_hat_, "inclusion"), float("nan"))
            self.effective_sample_size_ = dict.fromkeys(self.effective_sample_size_, float("nan"))
            return
        worst = [1.0]
        for chains in self._chains:
            used = np.array(
                [
                    columns_in_use(chain.kept, len(self._standardiser.usable)).toarray()
                    for chain in chains
                ]
            )
            share = used.mean(axis=(0, 1))
            worst += [r_hat(used[:, :, j]) for j in np.flatnonzero((share > 0.05) & (share < 0.95))]
        self.r_hat_["inclusion"] = max(worst)

    def _mean_scores(self, X: Matrix, squash: bool) -> np.ndarray:
        """Compute the scores (n_samples, n_outputs), averaged over the posterior samples."""
        X = self._rows(X)
        scores = np.empty((len(X), len(self._kept)))
        for first in range(0, len(X), ROWS_AT_ONCE):
            part = slice(first, first + ROWS_AT_ONCE)
            XT = self._standardiser.columns(X[part])
            for q, kept in enumerate(self._kept):
                scores[part, q] = mean_scores(kept, XT, squash)
        return scores

    def get_support(self, indices: bool = False, *, threshold: float = 0.5) -> np.ndarray:
        """Return the columns whose inclusion probability exceeds a threshold.

        Parameters
        ----------
        indices : bool, default False
            Whether to return column indices instead of a mask.
        threshold : float, default 0.5
            Threshold for the inclusion probability, in [0, 1).

        Returns
        -------
        ndarray
            Mask of shape (n_features,), or column indices.
        """
        check_is_fitted(self)
        check_real("threshold", threshold, 0.0, 1.0, below=True)
        mask = self.inclusion_probabilities_ > threshold
        return np.flatnonzero(mask) if indices else mask


LIKELIHOODS = {"gaussian": GAUSSIAN, "logistic": LOGISTIC}
