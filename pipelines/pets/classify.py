"""What ``annealed pets classify`` does to each photograph."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...models.images.classifier import ImageClassifier
from ...vision.images import read_image
from ...vision.words.pet_features import Photograph


@dataclass(frozen=True)
class Classification:
    """The likeliest class of one photograph.

    Attributes
    ----------
    image : str
        The file as it was named.
    label : str
    probability : float
    photograph : Photograph
        As it was read.
    """

    image: str
    label: str
    probability: float
    photograph: Photograph

    def record(self) -> dict[str, Any]:
        """Return the JSON object of the command line."""
        return {"image": self.image, "label": self.label, "probability": self.probability}


def classify_file(classifier: ImageClassifier, path: Path) -> Classification:
    """Classify one image file; raises a ValueError that names the file if it cannot be read."""
    photograph = Photograph(read_image(path))
    probabilities = classifier.predict_proba([photograph])[0]
    best = int(probabilities.argmax())
    return Classification(str(path), classifier.classes[best], float(probabilities[best]), photograph)
