"""Activities from binary sensors: simulation, readers, features, protocols, commands."""

import numpy as np
from annealed.pipelines.sensors.simulation import simulate_home

# -- simulation -----------------------------------------------------------------------------------------------------------------


def test_a_simulated_home_depends_on_its_seed_alone():
    home, longer, other = simulate_home(2), simulate_home(3), simulate_home(2, random_state=1)
    np.testing.assert_array_equal(home.on, longer.part(range(2)).on)
    np.testing.assert_array_equal(home.true, longer.true)
    assert not np.array_equal(home.on, other.on)
    assert home.on.shape == (1200, 40) and set(np.unique(home.on)) == {0.0, 1.0} and len(home.true) == 10
    assert longer.part(range(2, 3)).days.tolist() == [2] * 600
