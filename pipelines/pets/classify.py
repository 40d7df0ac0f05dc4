"""Classification of photographs of pets."""

from pathlib import Path
from typing import Any

from ...models.images.classifier import ImageClassifier
from ...vision import Photograph, read_image


def classify_file(
    classifier: ImageClassifier, path: Path, keep_photograph: bool = True
) -> tuple[dict[str, Any], Photograph | None]:
    """Classify an image file.

    The function returns the JSON object that the command line prints, and the photograph if it is
    requested, otherwise None. A ValueError that names the file is raised if it cannot be read.
    """
    photograph = Photograph(read_image(path))
    probabilities = classifier.predict_proba([photograph])[0]
    best = int(probabilities.argmax())
    label, probability = classifier.classes[best], float(probabilities[best])
    record = {"image": str(path), "label": label, "probability": probability}
    return record, photograph if keep_photograph else None
