"""Competitors of sparse Fourier features, each tuned by cross-validation on the training rows."""

import numpy as np
from annealed.learners import SDist
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC


class RecursiveFeatureMachine(ClassifierMixin, BaseEstimator):
    """Laplace kernel machine with a learnt diagonal metric (Radhakrishnan et al., 2024).

    The metric is the mean squared gradient of the previous fit. The authors' package xRFM requires
    torch; this class follows its diagonal variant.
    """

    def __init__(self, bandwidth=1.0, ridge=1e-2, n_rounds=5):
        self.bandwidth = bandwidth
        self.ridge = ridge
        self.n_rounds = n_rounds

    def fit(self, X, y):
        """Fit the model to labels -1 and +1."""
        self.classes_, self._X = np.unique(y), np.asarray(X, float)
        n, p = self._X.shape
        self.metric_ = np.ones(p)
        for step in range(self.n_rounds + 1):
            distance = self._distances(self._X)
            kernel = np.exp(-distance)
            self._alpha = np.linalg.solve(kernel + self.ridge * np.eye(n), np.asarray(y, float))
            if step < self.n_rounds:
                weight = kernel / np.where(distance > 1e-9, distance, np.inf) * self._alpha
                gradient = (weight.sum(axis=1)[:, None] * self._X - weight @ self._X) * self.metric_
                metric = (gradient**2).mean(axis=0)
                self.metric_ = metric / max(metric.mean(), 1e-300)
        return self

    def _distances(self, X):
        root = np.sqrt(self.metric_)
        return cdist(X * root, self._X * root) / (self.bandwidth * np.sqrt(len(root)))

    def predict(self, X):
        """Return the sign of the score."""
        return np.where(np.exp(-self._distances(np.asarray(X, float))) @ self._alpha > 0, 1, -1)


class ARD(ClassifierMixin, BaseEstimator):
    """Gaussian process regression on labels -1 and +1, with one length scale per column fitted by
    marginal likelihood (L-BFGS).
    """

    def __init__(self, n_iter=40):
        self.n_iter = n_iter

    def fit(self, X, y):
        """Maximise the marginal likelihood over the logarithms of the squared inverse lengths, the
        signal and the noise.
        """
        self.classes_, self._X = np.unique(y), np.asarray(X, float)
        n, p = self._X.shape
        y = np.asarray(y, float)

        def objective(theta):
            kernel = self._kernel(self._X, theta)
            A = kernel + (np.exp(theta[-1]) + 1e-6) * np.eye(n)
            factor = cho_factor(A, lower=True)
            alpha = cho_solve(factor, y)
            slope = 0.5 * (cho_solve(factor, np.eye(n)) - np.outer(alpha, alpha))
            weight = slope * kernel
            Z = self._X
            square = 2.0 * (weight.sum(axis=1) @ Z**2 - np.einsum("ij,ij->j", Z, weight @ Z))
            gradient = np.r_[
                -0.5 * square * np.exp(theta[:p]), weight.sum(), np.trace(slope) * np.exp(theta[-1])
            ]
            return 0.5 * y @ alpha + np.log(np.diag(factor[0])).sum(), gradient

        start = np.r_[np.full(p, -np.log(p)), 0.0, np.log(0.5)]
        bounds = [(-15.0, 5.0)] * (p + 2)
        self._theta = minimize(
            objective,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": self.n_iter},
        ).x
        A = self._kernel(self._X, self._theta) + (np.exp(self._theta[-1]) + 1e-6) * np.eye(n)
        self._alpha = np.linalg.solve(A, y)
        return self

    def _kernel(self, X, theta):
        root = np.exp(0.5 * theta[:-2])
        return np.exp(theta[-2] - 0.5 * cdist(X * root, self._X * root, "sqeuclidean"))

    def predict(self, X):
        """Return the sign of the mean."""
        return np.where(self._kernel(np.asarray(X, float), self._theta) @ self._alpha > 0, 1, -1)


def competitors(p: int, n_folds: int = 3) -> dict[str, BaseEstimator]:
    """Return estimators by name, each with a cross-validated search over its settings."""

    def searched(model, grid):
        return GridSearchCV(model, grid, cv=n_folds)

    wave = make_pipeline(
        StandardScaler(),
        RBFSampler(n_components=500, random_state=0),
        LogisticRegression(max_iter=500),
    )
    scales = [0.1 / p, 0.3 / p, 1.0 / p, 3.0 / p]
    svm = make_pipeline(StandardScaler(), SVC())
    interactions = SDist(seed_interactions=10, n_features_to_select=5)
    estimators = {
        "RBF-SVM": searched(svm, {"svc__gamma": scales, "svc__C": [0.3, 1, 10]}),
        "random Fourier features": searched(
            wave, {"rbfsampler__gamma": scales, "logisticregression__C": [0.01, 0.1, 1]}
        ),
        "RFM": searched(
            RecursiveFeatureMachine(), {"bandwidth": [0.3, 1, 3], "ridge": [1e-2, 1e-1]}
        ),
        "ARD": ARD(),
        "sDist": searched(interactions, {"kappa": [2, 5], "n_neighbors_predict": [5, 15]}),
    }
    try:
        from lightgbm import LGBMClassifier

        model = LGBMClassifier(n_estimators=200, learning_rate=0.05, n_jobs=1, verbose=-1)
        estimators["LightGBM"] = searched(
            model, {"num_leaves": [7, 31], "min_child_samples": [5, 20]}
        )
    except ImportError:
        pass
    return estimators
