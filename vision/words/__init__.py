"""Visual words: dense SIFT, bags of words, and the features of pets."""
