"""Layout and charts of HTML pages."""
