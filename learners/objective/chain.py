"""Loss of a linear-chain conditional random field for sequences of labels.

The score of labels c_1 ... c_T is sum_t f_t[c_t] + sum_t A[c_(t-1), c_t], where f_t contains the
class scores of row t, and A contains the transition scores. Probabilities are the softmax of the
scores of all label sequences. The loss is the negative log probability of the true labels, and its
gradient with respect to the scores f consists of the marginals minus the one-hot labels. The
forward-backward algorithm is a compiled loop with scaling. If a scale underflows, a NumPy version
with logarithms is used, which is also the reference in tests.
"""

import math

import numpy as np
from scipy.special import logsumexp

from ..compilation import jit
from ..types import ArrayLike
from .base import JointLoss

_MIN_SCALE = 1e-250  # below this scale, logarithms are used


class ChainLoss(JointLoss):
    """Negative log likelihood of a linear-chain conditional random field ([1]_, section 5).

    Parameters
    ----------
    lengths : array of shape (n_sequences,), int, or None, default None
        Number of rows of each sequence, in row order; None means a single sequence.
    transitions : ndarray of shape (n_classes, n_classes) or None, default None
        Score of each transition from the class of one row of a sequence (first axis) to the class
        of the next row (second axis). These scores are parameters of the loss, and
        :meth:`value_and_gradients` returns the gradient with respect to them. None means zero,
        which gives the multinomial loss.

    Notes
    -----
    ``y`` is one-hot encoded. The weight of a sequence is the mean of ``sample_weight`` over its
    rows. The value is the weighted sum over sequences, so weights of 1 / n for n rows give the
    total loss divided by the number of rows.

    References
    ----------
    .. [1] J. Liu, R. Fujimaki, J. Ye, "Forward-Backward Greedy Algorithms for General Convex Smooth
           Functions over A Cardinality Constraint", International Conference on Machine Learning
           (2014).

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import ChainLoss
    >>> loss = ChainLoss(transitions=np.array([[1.0, 0.0], [0.0, 1.0]]))
    >>> loss.best_path(np.array([[3.0, 0.0], [0.0, 0.5], [3.0, 0.0]]))
    array([0, 0, 0])
    """

    name = "chain"
    # 1/4 for a single score. The rows of a sequence are coupled, so no bound holds for all lengths.
    max_curvature = math.inf
    pointwise = False
    several_classes = True
    redundant_outputs = 1
    is_log_likelihood = True

    def __init__(
        self, lengths: ArrayLike | None = None, transitions: ArrayLike | None = None
    ) -> None:
        self.lengths = lengths
        self.transitions = transitions

    def value_and_gradient(
        self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray
    ) -> tuple[float, np.ndarray]:
        return self.value_and_gradients(y, scores, sample_weight)[:2]

    def value_and_gradients(
        self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """Compute the value, and the gradients with respect to scores and transitions.

        Parameters
        ----------
        y : ndarray of shape (n, n_classes)
            One-hot encoded classes.
        scores : ndarray of shape (n, n_classes)
            Class scores.
        sample_weight : ndarray of shape (n,)
            Row weights.

        Returns
        -------
        tuple of float, ndarray of shape (n, n_classes) and ndarray of shape (n_classes, n_classes)
            Value, gradient with respect to the scores, and gradient with respect to the
            transitions.
        """
        offsets, transitions = self._chains(scores)
        weights = np.add.reduceat(
            np.asarray(sample_weight, dtype=np.float64), offsets[:-1]
        ) / np.diff(offsets)
        return chain_terms(
            np.asarray(scores, dtype=np.float64), y.argmax(axis=1), transitions, offsets, weights
        )

    def marginals(self, scores: np.ndarray) -> np.ndarray:
        """Compute the probability of each class in each row, given all rows of its sequence.

        Parameters
        ----------
        scores : ndarray of shape (n, n_classes)
            Class scores.

        Returns
        -------
        ndarray of shape (n, n_classes)
            Probabilities; each row sums to one.
        """
        offsets, transitions = self._chains(scores)
        scores = np.asarray(scores, dtype=np.float64)
        return chain_terms(
            scores, np.empty(0, np.int64), transitions, offsets, np.ones(len(offsets) - 1)
        )[1]

    def best_path(self, scores: np.ndarray) -> np.ndarray:
        """Return the most probable label sequence, computed by the Viterbi algorithm.

        Parameters
        ----------
        scores : ndarray of shape (n, n_classes)
            Class scores.

        Returns
        -------
        ndarray of shape (n,), int
            Class indices.
        """
        offsets, transitions = self._chains(scores)
        return viterbi(np.asarray(scores, dtype=np.float64), transitions, offsets)

    def _chains(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the first rows of the sequences (plus the number of rows), and the transitions."""
        lengths = [len(scores)] if self.lengths is None else self.lengths
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        n_classes = scores.shape[1]
        transitions = (
            np.zeros((n_classes, n_classes)) if self.transitions is None else self.transitions
        )
        return offsets, np.asarray(transitions, dtype=np.float64)


def chain_terms(
    scores: np.ndarray,
    codes: np.ndarray,
    transitions: np.ndarray,
    offsets: np.ndarray,
    weights: np.ndarray,
) -> tuple[float, np.ndarray, np.ndarray]:
    """Compute the weighted negative log likelihood and its gradients.

    Parameters
    ----------
    scores : ndarray of shape (n, n_classes), float64
        Class scores.
    codes : ndarray of shape (n,), int
        True classes. If empty, the value is the sum of the log partition functions, and the
        gradients are the marginals.
    transitions : ndarray of shape (n_classes, n_classes)
        Transition scores, indexed [from, to].
    offsets : ndarray of shape (n_sequences + 1,), int
        First row of each sequence, followed by the number of rows.
    weights : ndarray of shape (n_sequences,)
        Weight of each sequence.

    Returns
    -------
    value : float
        Weighted negative log likelihood.
    gradient : ndarray of shape (n, n_classes)
        Gradient with respect to the scores.
    transition_gradient : ndarray of shape (n_classes, n_classes)
        Gradient with respect to the transitions.
    """
    gradient, transition_gradient = np.empty(scores.shape), np.zeros(transitions.shape)
    value = _chain_terms(
        scores, codes, transitions, offsets, weights, gradient, transition_gradient
    )
    return (
        reference_terms(scores, codes, transitions, offsets, weights)
        if math.isnan(value)
        else (value, gradient, transition_gradient)
    )


@jit
def _chain_terms(
    scores: np.ndarray,
    codes: np.ndarray,
    transitions: np.ndarray,
    offsets: np.ndarray,
    weights: np.ndarray,
    gradient: np.ndarray,
    transition_gradient: np.ndarray,
) -> float:
    """Run the scaled forward-backward algorithm on all sequences; NaN if a scale underflows."""
    n_classes = scores.shape[1]
    longest = 0
    for s in range(len(offsets) - 1):
        longest = max(longest, offsets[s + 1] - offsets[s])
    alpha, emission, scale = (
        np.empty((longest, n_classes)),
        np.empty((longest, n_classes)),
        np.empty(longest),
    )
    beta, ahead = np.empty(n_classes), np.empty(n_classes)
    largest = transitions.max()
    forward = np.exp(transitions - largest)
    backward = np.ascontiguousarray(forward.T)  # sums over the next class are contiguous
    expected = np.empty((n_classes, n_classes))
    value = 0.0
    for s in range(len(offsets) - 1):
        begin, length, weight = offsets[s], offsets[s + 1] - offsets[s], weights[s]
        total = 0.0
        for t in range(length):
            row = scores[begin + t]
            top = row.max()
            current = alpha[t]
            if t == 0:
                current[:] = 1.0
            else:
                total += largest
                last = alpha[t - 1]
                current[:] = 0.0
                for i in range(n_classes):
                    a = last[i]
                    for j in range(n_classes):
                        current[j] += a * forward[i, j]
            norm = 0.0
            for j in range(n_classes):
                emission[t, j] = math.exp(row[j] - top)
                current[j] *= emission[t, j]
                norm += current[j]
            if not norm > _MIN_SCALE:
                return np.nan
            inverse = 1.0 / norm
            for j in range(n_classes):
                current[j] *= inverse
            scale[t] = inverse
            total += math.log(norm) + top
        beta[:] = 1.0
        expected[:] = 0.0
        for t in range(length - 1, -1, -1):
            out = gradient[begin + t]
            for j in range(n_classes):
                if not beta[j] < 1e300:
                    return np.nan
                out[j] = weight * alpha[t, j] * beta[j]
                ahead[j] = emission[t, j] * beta[j] * scale[t]
            if t > 0:
                last = alpha[t - 1]
                for i in range(n_classes):
                    a = last[i]
                    for j in range(n_classes):
                        expected[i, j] += a * ahead[j]
                beta[:] = 0.0
                for j in range(n_classes):
                    u = ahead[j]
                    for i in range(n_classes):
                        beta[i] += u * backward[j, i]
        transition_gradient += weight * expected * forward
        previous = -1
        for t in range(length if len(codes) else 0):
            c = codes[begin + t]
            total -= scores[begin + t, c]
            gradient[begin + t, c] -= weight
            if t > 0:
                total -= transitions[previous, c]
                transition_gradient[previous, c] -= weight
            previous = c
        value += weight * total
    return value


def reference_terms(
    scores: np.ndarray,
    codes: np.ndarray,
    transitions: np.ndarray,
    offsets: np.ndarray,
    weights: np.ndarray,
) -> tuple[float, np.ndarray, np.ndarray]:
    """Compute :func:`chain_terms` in NumPy on a logarithmic scale.

    This never underflows, but is about fifty times slower.
    """
    gradient, transition_gradient, value = np.empty(scores.shape), np.zeros(transitions.shape), 0.0
    for begin, end, weight in zip(offsets[:-1], offsets[1:], weights, strict=True):
        f = scores[begin:end]
        alpha, beta = f.copy(), np.zeros_like(f)
        for t in range(1, len(f)):
            alpha[t] += logsumexp(alpha[t - 1][:, None] + transitions, axis=0)
        for t in range(len(f) - 1, 0, -1):
            beta[t - 1] = logsumexp(transitions + f[t] + beta[t], axis=1)
        log_z = logsumexp(alpha[-1])
        gradient[begin:end] = weight * np.exp(alpha + beta - log_z)
        for t in range(1, len(f)):
            transition_gradient += weight * np.exp(
                alpha[t - 1][:, None] + transitions + f[t] + beta[t] - log_z
            )
        value += weight * log_z
        if len(codes):
            c = codes[begin:end]
            value -= weight * (f[np.arange(len(f)), c].sum() + transitions[c[:-1], c[1:]].sum())
            gradient[np.arange(begin, end), c] -= weight
            np.subtract.at(transition_gradient, (c[:-1], c[1:]), weight)
    return float(value), gradient, transition_gradient


@jit
def viterbi(scores: np.ndarray, transitions: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return the jointly most probable classes of each sequence; the first class wins ties."""
    n_classes = scores.shape[1]
    path = np.empty(len(scores), np.int64)
    came_from = np.empty(scores.shape, np.int32)
    best, new = np.empty(n_classes), np.empty(n_classes)
    for s in range(len(offsets) - 1):
        begin, end = offsets[s], offsets[s + 1]
        best[:] = scores[begin]
        for t in range(begin + 1, end):
            for j in range(n_classes):
                top, arg = best[0] + transitions[0, j], 0
                for i in range(1, n_classes):
                    v = best[i] + transitions[i, j]
                    if v > top:
                        top, arg = v, i
                new[j] = top + scores[t, j]
                came_from[t, j] = arg
            best[:] = new
        last = np.argmax(best)
        path[end - 1] = last
        for t in range(end - 1, begin, -1):
            last = came_from[t, last]
            path[t - 1] = last
    return path
