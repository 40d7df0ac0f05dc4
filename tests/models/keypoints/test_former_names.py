"""The names until 0.2 still work, with a warning."""

import importlib
import sys

import annealed.models
import annealed.vision
import pytest
from annealed.models import DetectionResult, Instance
from annealed.models.keypoints.instances.shape_models import Pose


def test_names_of_models():
    with pytest.warns(FutureWarning, match="Face was renamed to Instance; the old name"):
        assert annealed.models.Face is Instance
    with pytest.warns(FutureWarning, match="OneEuroFilter is no longer used"):
        assert annealed.models.OneEuroFilter(0.5).cutoff == 0.5
    with pytest.warns(FutureWarning, match="pixel_of was renamed to nearest_pixel; the old"):
        assert annealed.vision.pixel_of is annealed.vision.nearest_pixel
    one = Instance(0.9, Pose(0, 0, 0), (0, 0, 1, 1), {}, None, 30.0, 1.0)
    with pytest.warns(FutureWarning, match="faces was renamed to instances"):
        assert DetectionResult([], [one]).faces == [one]
    with pytest.warns(FutureWarning, match="ied was renamed to reference_length"):
        assert one.ied == 30.0
    with pytest.raises(AttributeError):
        _ = annealed.models.NoSuchName


def test_modules_of_pipelines():
    sys.modules.pop("annealed.pipelines.faces", None)
    with pytest.warns(FutureWarning, match="annealed.pipelines.faces was renamed to"):
        detect = importlib.import_module("annealed.pipelines.faces.detect")
    assert detect.detect_files([], [], None) is not None
