"""Training of what stands on the detectors of single keypoints: assembly, refinement and
probabilities of whole faces.
"""
