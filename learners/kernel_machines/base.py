"""What the classifier and the regressor share: parameters, chains, and the description of what they found."""

from __future__ import annotations

from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.sparse import csr_matrix
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..common.validation import check_choice, check_integer, check_jobs, check_real
from .bank import anneal_bank, polished
from .chains.atoms import Prior
from .chains.diagnostics import effective_sample_size, r_hat
from .chains.moves import NAMES
from .chains.sampler import GAUSSIAN, LOGISTIC, Chain, run_chain
from .chains.screening import screen
from .description import DEGREES, ROWS_AT_ONCE, START_MASS, STEP_MASS, STOP_MASS, AtomFeatures
from .prediction import columns_in_use, joined, mean_scores, transition_counts
from .rows import Standardiser, correlated_groups

MOST_KEPT = 250  # samples per chain

PARAMETERS = """solver : {"mcmc", "annealed", "annealed+mcmc"}, default "mcmc"
        Chains from the posterior; or banks of random atoms of which annealing keeps the useful ones, polished by uphill moves; or
        chains that start from such banks.
    n_iter : int, default 20000
        Moves of each chain, at least 1.
    burn_in : int or None, default None
        Moves before samples are kept, below ``n_iter``; None is half of them.
    n_chains : int, default 2
        Chains, or banks, at least 1. Two or more tell whether they agree; predictions average over them.
    max_components : int, default 40
        Most atoms, at least 1. Memory is 16 bytes per row and atom.
    expected_components : float, default 5.0
        Mean of the Poisson prior of the number of atoms, above 0.
    max_order : int, default 3
        Most columns of an atom, at least 1.
    frequency_scale : float, default 1.5
        Scale of the frequencies' prior in radians per standard deviation of a column, above 0.
    weight_precision : float, default 1.0
        Precision of the normal prior of the weights, above 0, relative to the noise's where there is noise.
    screening : {"pairs", "triples"} or None, default "pairs"
        Half of the births come from a table of the most informative columns and products of two or three; None leaves only
        births from the prior, which find nothing among hundreds of columns.
    n_components : int, default 50
        Atoms of a bank that annealing keeps, at least 1.
    n_bank : int, default 5000
        Candidates of a bank in each round, at least 1.
    n_rounds : int, default 4
        Rounds that redraw candidates around the remaining atoms, at least 0.
    group_correlation : float, default 0.5
        Columns joined by correlations above it form a group, in (0, 1].
    max_samples : int or None, default 10000
        Rows of each chain, at least 1: more are drawn at random, anew for each chain. None uses all.
    random_state : int, RandomState or None, default None
        Seed of the chains.
    n_jobs : int or None, default None
        Chains side by side, in threads; the result does not depend on it."""

ATTRIBUTES = """inclusion_probabilities_ : ndarray of shape (n_features,)
        Share of the kept samples in which an atom holds the column; of several outputs, the probability that one of them needs it.
    chain_inclusion_probabilities_ : ndarray of shape (n_outputs * n_chains, n_features)
        The same for each chain by itself: do the chains agree?
    group_inclusion_probabilities_ : ndarray of shape (n_groups,)
        The same for the groups: at least one of its columns. Chains settle on different ones of several correlated columns.
    groups_ : ndarray of int of shape (n_features,)
        Group of each column.
    atoms_ : list of tuple of int
        Columns of each atom of the kept sample with the greatest posterior probability, the outputs one after the other.
    frequencies_ : csr_matrix of shape (n_atoms, n_features)
        Frequencies of ``atoms_``, in radians per unit of X.
    phases_ : ndarray of shape (n_atoms,)
        The features are cos and sin of X frequencies_' - phases_.
    transition_counts_ : csr_matrix of shape (n_features + 1, n_features + 1)
        Mean number of steps from one column to the next within the atoms of a sample: which columns act together. Row and column 0
        stand for the null state in which atoms begin and end, column j of X for j + 1.
    n_components_ : ndarray of int of shape (n_outputs, n_chains, n_kept)
        Number of atoms of each kept sample.
    acceptance_ : dict of str to float
        Accepted share of each kind of move.
    r_hat_ : dict of str to float
        Rank-normalised split R-hat [3]_ of "log_likelihood", "n_components" and "inclusion", the worst of columns and outputs.
    effective_sample_size_ : dict of str to float
        Of "log_likelihood" and "n_components", the least of the outputs.
    traces_ : ndarray of shape (n_outputs, n_chains, n_traced, 2)
        Log likelihood and number of atoms along the whole run.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        As everywhere in scikit-learn."""

REFERENCES = """References
    ----------
    .. [1] Y. Ma, "Flexible Sparse Learning of Feature Subspaces", PhD thesis, Columbia University, 2017, section 4.2.
    .. [2] P. J. Green, "Reversible Jump Markov Chain Monte Carlo Computation and Bayesian Model Determination", Biometrika 82
       (1995).
    .. [3] A. Vehtari, A. Gelman, D. Simpson, B. Carpenter, P.-C. Bürkner, "Rank-Normalization, Folding, and Localization: An
       Improved R-hat for Assessing Convergence of MCMC", Bayesian Analysis 16 (2021).
    .. [4] N. G. Polson, J. G. Scott, J. Windle, "Bayesian Inference for Logistic Models Using Polya-Gamma Latent Variables",
       Journal of the American Statistical Association 108 (2013)."""


class SparseFourierBase(AtomFeatures):
    """Chains over sparse frequencies for one output or several."""

    _chains: list[list[Chain]]

    def __init__(
        self,
        *,
        solver="mcmc",
        n_iter=20000,
        burn_in=None,
        n_chains=2,
        max_components=40,
        expected_components=5.0,
        weight_precision=1.0,
        group_correlation=0.5,
        n_jobs=None,
        **parameters: Any,
    ):
        super().__init__(**parameters)
        self.solver = solver
        self.n_iter = n_iter
        self.burn_in = burn_in
        self.n_chains = n_chains
        self.max_components = max_components
        self.expected_components = expected_components
        self.weight_precision = weight_precision
        self.group_correlation = group_correlation
        self.n_jobs = n_jobs

    def _check_parameters(self) -> None:
        check_choice("solver", self.solver, ("mcmc", "annealed", "annealed+mcmc"))
        check_integer("n_rounds", self.n_rounds, 0)
        for name in ("n_iter", "n_chains", "max_components", "max_order", "n_components", "n_bank"):
            check_integer(name, getattr(self, name), 1)
        for name in ("expected_components", "frequency_scale", "weight_precision"):
            check_real(name, getattr(self, name), 0.0, above=True)
        check_real("group_correlation", self.group_correlation, 0.0, 1.0, above=True)
        check_choice("screening", self.screening, ("pairs", "triples", None))
        if self.burn_in is not None:
            check_integer("burn_in", self.burn_in, 0, self.n_iter - 1)
        if self.max_samples is not None:
            check_integer("max_samples", self.max_samples, 1)
        check_jobs(self.n_jobs)

    def _fit_outputs(self, X, targets, likelihood: int) -> None:
        """Run the chains of each target, a column of ``targets`` (n_samples, n_outputs)."""
        self._standardiser = Standardiser.of(X)
        p = len(self._standardiser.usable)
        prior = self._prior(p)
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        streams = iter(np.random.SeedSequence(seed).spawn(1 + targets.shape[1] * self.n_chains))
        n = len(X)
        most = n if self.max_samples is None else min(n, self.max_samples)
        rows = _some_rows(np.random.default_rng(next(streams)), n, most)
        XT = self._standardiser.columns(X[rows])
        self._set_groups(XT, X.shape[1])
        jobs = []
        for target in targets.T:
            table = screen(XT, target[rows], self.frequency_scale, self.screening, prior.max_order)
            jobs += [(target, table, next(streams)) for _ in range(self.n_chains)]

        def one(target, table, stream):
            rng = np.random.default_rng(stream)
            if most == n:
                return self._chain(likelihood, XT, target, prior, table, rng)
            rows = _some_rows(rng, n, most)
            return self._chain(likelihood, self._standardiser.columns(X[rows]), target[rows], prior, table, rng)

        found = Parallel(n_jobs=self.n_jobs, prefer="threads")(delayed(one)(*job) for job in jobs)
        self._chains = [found[i : i + self.n_chains] for i in range(0, len(found), self.n_chains)]
        self._kept = [joined([chain.kept for chain in chains]) for chains in self._chains]
        self._describe_columns(X.shape[1])
        self._describe_atoms(X.shape[1])
        self._describe_chains()

    def _prior(self, p: int) -> Prior:
        order = min(self.max_order, max(p, 1))
        masses = (START_MASS, STOP_MASS, STEP_MASS)
        return Prior(p, order, *masses, float(self.expected_components), float(self.frequency_scale), DEGREES)

    def _set_groups(self, XT, n_features: int) -> None:
        """Groups of the usable columns; the constant ones form one more."""
        groups = np.full(n_features, -1)
        groups[self._standardiser.usable] = correlated_groups(XT, self.group_correlation)
        self.groups_ = np.unique(groups, return_inverse=True)[1]

    def _chain(self, likelihood, XT, target, prior, table, rng) -> Chain:
        precision = float(self.weight_precision)
        most = self.max_components if len(XT) else 0
        start = None
        if self.solver != "mcmc" and len(XT):
            deviation = target.std()
            standard = (target - target.mean()) / (deviation if deviation > 0 else 1.0)
            wanted = self.n_components if self.solver == "annealed" else min(self.n_components, most)
            sizes = {"n_components": wanted, "n_bank": self.n_bank, "n_rounds": self.n_rounds}
            start = anneal_bank(XT, standard[:, None], prior, [table], rng, **sizes)
            if self.solver == "annealed":
                return polished(likelihood, XT, target, prior, table, rng, start, precision)
        burn_in = self._burn_in()
        return run_chain(
            likelihood, XT, target, prior, table, rng, max_components=most, precision=precision, n_iter=self.n_iter,
            burn_in=burn_in, n_kept=min(MOST_KEPT, self.n_iter - burn_in), start=start,
        )  # fmt: skip

    def _burn_in(self) -> int:
        return self.n_iter // 2 if self.burn_in is None else self.burn_in

    def _describe_columns(self, n_features: int) -> None:
        usable = self._standardiser.usable
        used = [columns_in_use(kept, len(usable)) for kept in self._kept]
        self.inclusion_probabilities_ = np.zeros(n_features)
        self.inclusion_probabilities_[usable] = 1.0 - np.prod([1.0 - u.mean(axis=0).A1 for u in used], axis=0)
        each = [columns_in_use(chain.kept, len(usable)).mean(axis=0).A1 for chains in self._chains for chain in chains]
        self.chain_inclusion_probabilities_ = np.zeros((len(each), n_features))
        self.chain_inclusion_probabilities_[:, usable] = each
        n_groups = self.groups_.max() + 1
        member = csr_matrix((np.ones(len(usable)), (np.arange(len(usable)), self.groups_[usable])), shape=(len(usable), n_groups))
        none = [1.0 - ((u @ member) > 0).mean(axis=0).A1 for u in used]
        self.group_inclusion_probabilities_ = 1.0 - np.prod(none, axis=0)
        counts = sum(transition_counts(kept, len(usable)) for kept in self._kept).tocoo()
        state = np.concatenate([[0], usable + 1])
        shape = (n_features + 1, n_features + 1)
        self.transition_counts_ = csr_matrix((counts.data, (state[counts.row], state[counts.col])), shape=shape)

    def _describe_chains(self) -> None:
        self.n_components_ = np.array([[chain.kept.size for chain in chains] for chains in self._chains])
        self.traces_ = np.array([[chain.trace for chain in chains] for chains in self._chains])
        tried = np.sum([chain.tried for chains in self._chains for chain in chains], axis=0)
        accepted = np.sum([chain.accepted for chains in self._chains for chain in chains], axis=0)
        self.acceptance_ = {name: float(a / max(t, 1)) for name, a, t in zip(NAMES, accepted, tried)}
        n_traced = self.traces_.shape[2]
        late = self.traces_[:, :, -(-self._burn_in() * n_traced // self.n_iter) :]
        self.r_hat_, self.effective_sample_size_ = {}, {}
        for i, name in enumerate(("log_likelihood", "n_components")):
            self.r_hat_[name] = max(r_hat(traces) for traces in late[..., i])
            self.effective_sample_size_[name] = min(effective_sample_size(traces) for traces in late[..., i])
        if self.solver == "annealed":  # no chains, but banks
            self.r_hat_ = dict.fromkeys((*self.r_hat_, "inclusion"), float("nan"))
            self.effective_sample_size_ = dict.fromkeys(self.effective_sample_size_, float("nan"))
            return
        worst = [1.0]
        for chains in self._chains:
            used = np.array([columns_in_use(chain.kept, len(self._standardiser.usable)).toarray() for chain in chains])
            share = used.mean(axis=(0, 1))
            worst += [r_hat(used[:, :, j]) for j in np.flatnonzero((share > 0.05) & (share < 0.95))]
        self.r_hat_["inclusion"] = max(worst)

    def _mean_scores(self, X, squash: bool) -> np.ndarray:
        """Mean scores (n_samples, n_outputs) over the samples."""
        X = self._rows(X)
        found = np.empty((len(X), len(self._kept)))
        for first in range(0, len(X), ROWS_AT_ONCE):
            part = slice(first, first + ROWS_AT_ONCE)
            XT = self._standardiser.columns(X[part])
            for q, kept in enumerate(self._kept):
                found[part, q] = mean_scores(kept, XT, squash)
        return found

    def get_support(self, indices=False, *, threshold=0.5):
        """Columns that are probably needed.

        Parameters
        ----------
        indices : bool, default False
            Return numbers of columns instead of a mask.
        threshold : float, default 0.5
            The inclusion probability is above it, in [0, 1).

        Returns
        -------
        ndarray
            Mask of shape (n_features,), or numbers of the columns.
        """
        check_is_fitted(self)
        check_real("threshold", threshold, 0.0, 1.0, below=True)
        mask = self.inclusion_probabilities_ > threshold
        return np.flatnonzero(mask) if indices else mask


def _some_rows(rng: np.random.Generator, n: int, most: int) -> np.ndarray:
    return np.arange(n) if most == n else np.sort(rng.choice(n, most, replace=False))


LIKELIHOODS = {"gaussian": GAUSSIAN, "logistic": LOGISTIC}
