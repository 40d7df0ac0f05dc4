"""Visual words: dense SIFT, bags of words, and features of pet photographs."""
