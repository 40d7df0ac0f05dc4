"""Training of the assembly, refinement and probabilities of whole faces, on top of the keypoint
detectors.
"""
