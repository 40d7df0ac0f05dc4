"""NDCG@10 of annealing, ridge regression and LightGBM's ranker on the five official folds of MQ2008
and on LightGBM's ranking example.

    python benchmarks/ranking.py --data DATA
"""

from __future__ import annotations

import json
from itertools import product

import numpy as np
from annealed.learners import FSAPath, FSARanker, PiecewiseLinear, Prior
from annealed_experiments.datasets import Queries, read_lambdarank, read_mq2008
from common import new_parser
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


def mean_ndcg(grade: np.ndarray, score: np.ndarray, qid: np.ndarray, *, k: int = 10) -> float:
    """Compute NDCG@k with gain 2^grade - 1 and discount 1 / log2(1 + rank), averaged over the
    queries with a relevant item.

    All arrays have shape (n_items,); equal scores keep the order of the rows.

    Examples
    --------
    >>> round(mean_ndcg(np.array([0, 2, 1]), np.array([0.1, 0.2, 0.3]), np.zeros(3)), 4)
    0.7967
    """
    discount = 1.0 / np.log2(np.arange(2, k + 2))
    scores = []
    for query in np.unique(qid):
        rows = qid == query
        gain = 2.0 ** grade[rows] - 1.0
        if gain.max() > 0:
            ranked = gain[np.argsort(-score[rows], kind="stable")][:k]
            best = np.sort(gain)[::-1][:k]
            scores.append((ranked @ discount[: len(ranked)]) / (best @ discount[: len(best)]))
    return float(np.mean(scores))


def _best(models, valid):
    """Return the model with the highest NDCG@10 on the validation part; ties go to the first."""
    return max(models, key=lambda model: mean_ndcg(valid.grade, model.predict(valid.X), valid.qid))


def _fsa_rankers(train, valid):
    """Yield FSARanker with several responses, penalties and sizes."""
    responses = ("linear", "piecewise", PiecewiseLinear(4, "quantile"))
    for response, shrinkage in product(responses, (1e-4, 1e-3, 1e-2)):
        path = FSAPath(
            FSARanker(prior=Prior(shrinkage=shrinkage), response=response),
            sizes=[5, 10, 15, 20, 30, 46],
        )
        path.fit(train.X, train.grade, qid=train.qid)
        yield from map(path.get_estimator, path.sizes_)


def _ridge_rankers(train, valid):
    """Yield ridge regression of the grades with several penalties."""
    for alpha in (0.1, 1, 10, 100, 1000):
        yield make_pipeline(StandardScaler(), Ridge(alpha)).fit(train.X, train.grade)


def _lightgbm_rankers(train, valid):
    """Yield LightGBM's ranker with several numbers of leaves."""
    from lightgbm import LGBMRanker, early_stopping, log_evaluation

    parts = []
    for part in (train, valid):
        order = np.argsort(part.qid, kind="stable")
        parts.append((part.X[order], part.grade[order], np.unique(part.qid, return_counts=True)[1]))
    (X, grade, group), (X_valid, grade_valid, group_valid) = parts
    stop = {"eval_set": [(X_valid, grade_valid)], "eval_group": [group_valid], "eval_at": [10]}
    for leaves in (7, 15, 31):
        model = LGBMRanker(
            n_estimators=500,
            num_leaves=leaves,
            learning_rate=0.05,
            n_jobs=1,
            random_state=0,
            verbose=-1,
        )
        yield model.fit(
            X,
            grade,
            group=group,
            callbacks=[early_stopping(50, verbose=False), log_evaluation(0)],
            **stop,
        )


RANKERS = {"annealed": _fsa_rankers, "ridge": _ridge_rankers, "lightgbm": _lightgbm_rankers}


def mq2008(name, data_dir):
    """Evaluate on the five official folds of MQ2008."""
    folds, sizes = [], []
    for train, valid, test in read_mq2008(data_dir):
        model = _best(RANKERS[name](train, valid), valid)
        folds.append(mean_ndcg(test.grade, model.predict(test.X), test.qid))
        sizes.append(int(model.support_.sum()) if name == "annealed" else train.X.shape[1])
    result = {"k": sizes, "ndcg@10": float(np.mean(folds)), "folds": np.round(folds, 4).tolist()}
    return {"data": "mq2008", "method": name, **result}


def lambdarank(name, data_dir):
    """Evaluate on LightGBM's ranking example."""
    train, test = read_lambdarank(data_dir)
    fitted = train.qid <= np.quantile(np.unique(train.qid), 0.8)
    parts = [Queries(*(part[rows] for part in train)) for rows in (fitted, ~fitted)]
    model = _best(RANKERS[name](*parts), parts[1])
    return {
        "data": "lambdarank",
        "method": name,
        "ndcg@10": mean_ndcg(test.grade, model.predict(test.X), test.qid),
    }


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument("--data", help="folder with the real data")
    parser.add_argument("--method", action="append", choices=[*RANKERS])
    arguments = parser.parse_args(argv)
    for measure, name in product((mq2008, lambdarank), arguments.method or RANKERS):
        print(json.dumps(measure(name, arguments.data)), flush=True)


if __name__ == "__main__":
    main()
