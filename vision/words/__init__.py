"""Visual words: dense SIFT, bags of words, the features of pets."""
