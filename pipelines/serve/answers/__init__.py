"""What worker processes answer: one module per tab of the page."""
