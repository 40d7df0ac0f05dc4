"""Responses for the Pets tab: the class of a photograph, and the location of the evidence."""

from functools import cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from ....models import Explanation, load_model
from ...common.data_urls import jpeg_url, png_url
from ...pets.classify import classify_file
from .faces import check_pixels
from .fields import Fields, accepts
from .limits import LIMITS

N_CONTRIBUTIONS = 12
_BLUR = 6.0  # pixels, as in `annealed pets classify --overlay`
_FULL = 99.0  # percentile of the evidence from which on it is drawn in full colour
_FOR, _AGAINST = (213, 60, 50), (0, 114, 178)


classifier = prepare = cache(lambda: load_model("pets"))  # the shipped model


@accepts("evidence")
def pets(path: Path, fields: Fields, tell: Any) -> dict[str, Any]:
    """Return the JSON object that ``annealed pets classify --json`` prints.

    If ``evidence`` is set, it also contains the location of the evidence.
    """
    check_pixels(path, LIMITS["pets"].pixels)
    tell("counting visual words")
    record, photograph = classify_file(classifier(), path)
    if photograph is not None and fields.flag("evidence"):
        tell("drawing the evidence")
        record["evidence"] = _evidence(classifier().explain(photograph))
    return record


def _evidence(explained: Explanation) -> dict[str, Any]:
    """Draw the evidence for the label in red and against it in blue; stronger evidence is less
    transparent."""
    heat = cv2.GaussianBlur(explained.heat, (0, 0), _BLUR)
    strongest_pixels = float(np.percentile(np.abs(heat), _FULL))
    share = np.clip(np.abs(heat) / max(strongest_pixels, 1e-12), 0.0, 1.0)
    layer = np.empty((*heat.shape, 4), np.uint8)
    layer[:, :, :3] = np.where(heat[:, :, None] > 0, _FOR, _AGAINST)
    layer[:, :, 3] = np.round(235 * share)
    return {
        "picture": jpeg_url(explained.image),
        "heat": png_url(layer),
        "contributions": [
            {"name": name, "value": value}
            for name, value in explained.contributions[:N_CONTRIBUTIONS]
        ],
    }
