"""Classification of photographs (``annealed pets classify``)."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...models.images.classifier import ImageClassifier
from ...vision.images import read_image
from ...vision.words.pet_features import Photograph


@dataclass(frozen=True)
class Classification:
    """Most likely class of one photograph.

    Attributes
    ----------
    image : str
        File name as given by the caller.
    label : str
    probability : float
    photograph : Photograph or None
        Photograph; None if it was not requested.
    """

    image: str
    label: str
    probability: float
    photograph: Any

    def record(self) -> dict[str, Any]:
        """Return the JSON object of the command line."""
        return {"image": self.image, "label": self.label, "probability": self.probability}


def classify_file(
    classifier: ImageClassifier, path: Path, keep_photograph: bool = True
) -> Classification:
    """Classify one image file; raises a ValueError that names the file if it cannot be read."""
    photograph = Photograph(read_image(path))
    probabilities = classifier.predict_proba([photograph])[0]
    best = int(probabilities.argmax())
    result = Classification(
        str(path), classifier.classes[best], float(probabilities[best]), photograph
    )
    return result if keep_photograph else replace(result, photograph=None)
