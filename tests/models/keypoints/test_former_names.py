"""The names until 0.2 still work, with a warning."""

import importlib
import sys

import annealed.models
import annealed.vision
import pytest
from annealed.models import DetectionResult, Instance
from annealed.models.keypoints.instances.shape_models import Pose


def test_names_of_models():
    with pytest.warns(FutureWarning, match="Face is Instance; the old name ends with 0.4"):
        assert annealed.models.Face is Instance
    with pytest.warns(FutureWarning, match="OneEuroFilter is not used"):
        assert annealed.models.OneEuroFilter(0.5).cutoff == 0.5
    with pytest.warns(FutureWarning, match="pixel_of is nearest_pixel; the old name ends with 0.4"):
        assert annealed.vision.pixel_of is annealed.vision.nearest_pixel
    one = Instance(0.9, Pose(0, 0, 0), (0, 0, 1, 1), {}, None, 30.0, 1.0)
    with pytest.warns(FutureWarning, match="faces is instances"):
        assert DetectionResult([], [one]).faces == [one]
    with pytest.warns(FutureWarning, match="ied is reference_length"):
        assert one.ied == 30.0
    with pytest.raises(AttributeError):
        _ = annealed.models.NoSuchName


def test_modules_of_pipelines():
    sys.modules.pop("annealed.pipelines.faces", None)
    with pytest.warns(
        FutureWarning, match="annealed.pipelines.faces is annealed.pipelines.keypoints"
    ):
        detect = importlib.import_module("annealed.pipelines.faces.detect")
    assert detect.detect_files([], [], None) is not None
