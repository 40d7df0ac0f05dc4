"""
Activities from few sensors
===========================

A simulated home has 40 binary sensors, ten of which respond to the inhabitant's activities. A
conditional random field on ten sensors labels every minute of a day. The home comes with
annealed-experiments.
"""

import numpy as np
from annealed.learners import ForwardBackwardCRF, LinearChainCRF
from annealed_experiments.tables.sensors_simulation import simulate_home
from matplotlib import colormaps
from matplotlib import pyplot as plt

home = simulate_home(n_days=12, minutes=600)
train, test = home.part(range(10)), home.part(range(10, 12))
few = ForwardBackwardCRF(10).fit(train.on, train.activities, sequence=train.days)
every = LinearChainCRF(ridge=2.0).fit(train.on, train.activities, sequence=train.days)
print("sensors:", few.get_support(indices=True))
bands = {
    "truth": test.activities,
    "10 sensors": few.predict(test.on),
    "40 sensors": every.predict(test.on),
}
for name, labels in bands.items():
    print(f"{name}: {100 * np.mean(labels != test.activities):.0f}% of the minutes wrong")

codes = np.unique(np.concatenate(list(bands.values())), return_inverse=True)[1].reshape(
    len(bands), -1
)
figure, ax = plt.subplots(figsize=(9, 2.2), layout="constrained")
ax.imshow(codes, aspect="auto", cmap=colormaps["tab20"], interpolation="nearest")
text = ax.set(yticks=range(len(bands)), yticklabels=list(bands), xlabel="minute")
