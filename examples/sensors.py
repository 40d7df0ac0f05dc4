"""Select the five sensors of a home that best predict its inhabitant's activities, and label a day.

python examples/sensors.py FOLDER HOME      a folder of homes (docs/sensors.md) and the name of one;
writes HOME.png
"""

import sys
from pathlib import Path

import numpy as np
from annealed.learners import FSACRF
from annealed.models.sensors.features import minute_features
from annealed.pipelines.sensors.readers import read_home
from annealed.pipelines.sensors.report import draw_day

folder, name = Path(sys.argv[1]), sys.argv[2]
minutes = read_home(folder, name).minutes
X, groups = minute_features(minutes, ("on", "start", "history"))
y, days = minutes.activities, minutes.days

# Every fifth day is kept for the test; a sensor is a group of columns that is selected or dropped
# as a whole.
test = np.isin(days, np.unique(days)[::5])
model = FSACRF(5, np.array(minutes.sensors)[groups]).fit(X[~test], y[~test], sequence=days[~test])
print("sensors:", ", ".join(model.selected_groups_))
print(
    f"error on {len(np.unique(days[test]))} other days: "
    f"{1 - model.score(X[test], y[test], sequence=days[test]):.3f}"
)

day = np.unique(days[test])[1]
rows = days == day
draw_day(
    Path(f"{name}.png"),
    minutes.times[rows],
    {"truth": y[rows], "predicted": model.predict(X[rows])},
    f"{name}, {day}",
)
