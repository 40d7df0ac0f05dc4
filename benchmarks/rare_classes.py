"""Log loss on new rows with rare classes: the default loss compared with the logistic loss on the
same columns; see docs/losses.md."""

import warnings

import numpy as np
from annealed.learners import FSAClassifier
from common import new_parser, print_head, print_line
from sklearn.metrics import log_loss

CASES = [
    (n, share) for n in (2000, 20_000) for share in (0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
]


def draw(rng, n, share):
    X, y = rng.standard_normal((n, 20)), np.zeros(n, int)
    y[: round(n * share)] = 1
    X[y == 1, 4] += 1.5
    return X, y


def trial(n, share, seed):
    """Return the test log losses of both losses and of a constant, the ratio of the mean
    probability to the share, and whether the training loss is worse than that of a constant."""
    rng = np.random.default_rng(seed)
    (X, y), (X_test, y_test) = draw(rng, n, share), draw(rng, 5 * n, share)
    model = FSAClassifier(3).fit(X, y)
    columns = model.get_support(indices=True)
    logistic = FSAClassifier(3, loss="logistic").fit(X[:, columns], y)
    constant = -share * np.log(share) - (1 - share) * np.log(1 - share)
    p = model.predict_proba(X)
    return (
        log_loss(y_test, model.predict_proba(X_test)) / constant,
        log_loss(y_test, logistic.predict_proba(X_test[:, columns])) / constant,
        p[:, 1].mean() / share,
        log_loss(y, p) > constant,
    )


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    seeds = parser.parse_args(argv).seeds
    warnings.simplefilter("ignore", UserWarning)
    print_head(
        "rows",
        "share",
        "default",
        "logistic",
        "mean probability / share",
        "training worse than a constant",
    )
    for n, share in CASES:
        ours, theirs, ratio, worse = np.transpose([trial(n, share, seed) for seed in range(seeds)])
        numbers = [f"{values.mean():.3f}" for values in (ours, theirs, ratio)]
        print_line(n, f"{share:.1%}", *numbers, f"{worse.sum():.0f} of {seeds}")


if __name__ == "__main__":
    main()
