"""Terms of the objective: losses of the scores and priors on the coefficients."""
