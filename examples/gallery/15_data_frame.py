"""
Columns of a data frame
=======================

The table has numbers, text, dates and missing cells. Cross-validation chooses the number of
columns; the plots show its scores and the effect of each selected column.
"""

import numpy as np
import pandas as pd
from annealed import TabularSelector
from matplotlib import pyplot as plt

rng = np.random.default_rng(0)
n = 600
frame = pd.DataFrame(rng.standard_normal((n, 20)), columns=[f"sensor {i}" for i in range(20)])
frame["city"] = rng.choice(["Oslo", "Rome", "Kiel", "Bern"], n)
frame["day"] = pd.date_range("2024-01-01", periods=n, tz="Europe/Berlin")
frame["sensor 3"] = frame["sensor 3"].mask(rng.random(n) < 0.1)
rome = frame["city"] == "Rome"
y = 2 * frame["sensor 7"] - frame["sensor 12"] + 2 * rome + rng.standard_normal(n)

selector = TabularSelector().fit(frame, y)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
selector.plot_path(ax=left)
selector.plot(ax=right)

print("selected:", selector.get_feature_names_out())
