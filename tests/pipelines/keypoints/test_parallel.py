"""Detection in several processes."""

import numpy as np
import pytest
from annealed.models import KeypointDetector
from annealed.pipelines.keypoints.detect import detect_many
from window_models import GUIDE, IMAGE, POOL, random_classifier


def test_many_images_in_any_number_of_processes():
    detector = KeypointDetector({"a": random_classifier(7, 60, 0.01)}, POOL, guides={"a": GUIDE})
    images = [IMAGE, IMAGE[:100], IMAGE[:, 50:], IMAGE[::-1]]
    options = {"mode": "regress", "threshold": -np.inf, "min_size": 30}
    one = [detector.detect(image, **options) for image in images]
    for n_jobs in (1, 3):
        assert list(detect_many(detector, images, n_jobs, **options)) == one
    with pytest.raises(ValueError, match="n_jobs=0"):
        list(detect_many(detector, images, 0))
    answers = detect_many(detector, [IMAGE, IMAGE.astype(complex), IMAGE], 2, **options)
    assert next(answers) == one[0]  # a bad image raises when it is its turn
    with pytest.raises(ValueError, match="complex"):
        next(answers)
