"""
Learning to rank
================

Twenty items of each of 40 queries have grades from 0 to 3. ``FSARanker`` selects columns that order
the items within a query; an offset common to all items of a query has no effect.
"""

import numpy as np
from annealed.learners import FSARanker
from matplotlib import pyplot as plt
from sklearn.metrics import ndcg_score

rng = np.random.default_rng(0)
queries, items = 40, 20
X = rng.standard_normal((queries * items, 100))
qid = np.repeat(np.arange(queries), items)
offset = 3 * rng.standard_normal(queries)[qid]  # some queries have better items
utility = X[:, 3] + X[:, 8] - X[:, 21] / 2 + 0.7 * rng.standard_normal(len(X)) + offset
place = np.argsort(np.argsort(utility.reshape(queries, items), axis=1), axis=1)
grades = np.digitize(place, [8, 14, 18]).ravel()

train = qid < 20
sizes = [1, 2, 3, 5, 10, 20]
scores = []
for k in sizes:
    model = FSARanker(k).fit(X[train], grades[train], qid=qid[train])
    tables = [values[~train].reshape(-1, items) for values in (grades, model.predict(X))]
    scores.append(ndcg_score(*tables, k=10))
    print(k, model.get_support(indices=True)[:6], round(scores[-1], 3))

figure, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
ax.plot(sizes, scores, marker="o")
text = ax.set(xscale="log", xlabel="number of columns", ylabel="NDCG@10 on new queries")
