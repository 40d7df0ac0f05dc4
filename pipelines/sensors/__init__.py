"""Activities at home from binary sensors: readers, simulation, protocols, reports."""
