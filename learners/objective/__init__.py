"""What is minimised: losses of scores and priors of coefficients."""
