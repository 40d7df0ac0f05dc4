"""Train on photographs of cats and dogs, measure the error on others, and draw the evidence.

    python examples/train_cats_and_dogs.py FOLDER           # Kaggle's "Dogs vs. Cats"
    python examples/train_cats_and_dogs.py FOLDER 1000      # 1,000 words, for a few photographs

FOLDER is any folder that ``annealed pets train`` accepts, such as the Oxford-IIIT tree, or one
subfolder per class. Writes cats_and_dogs.safetensors and evidence.png.
"""

import sys

from annealed.models import ClassifierSettings, ImageClassifier
from annealed.pipelines.pets.data import Photographs, read_pets, usable
from annealed.pipelines.pets.report import draw_evidence
from annealed.vision import PetFeatures


def main(folder: str, words: str = "5000") -> None:
    """Train on the training split, or on four of five photographs where there is none; test on the
    others."""
    features = PetFeatures(int(words), random_state=0)
    files, damaged = usable(read_pets(folder), features.side)
    print(f"{len(files)} photographs, {len(damaged)} cannot be read")
    if any(f.split for f in files):
        train, test = ([f for f in files if f.split == split] for split in ("train", "test"))
    else:
        train, test = [f for i, f in enumerate(files) if i % 5], files[::5]
    # Kaggle's photographs have no head boxes: 26,000 columns instead of 31,000
    features.heads = any(f.head for f in train)

    model = ImageClassifier(features, ClassifierSettings(n_features_to_select=500))
    model.fit(Photographs(train, features.side), [f.label for f in train])
    for part in model.scorers:
        print(part, model.info[part], model.selected_names(part)[:5])
    model.save("cats_and_dogs.safetensors")

    photographs = Photographs(test, features.side)
    labels = model.predict(photographs)
    wrong = [f.path.name for label, f in zip(labels, test, strict=True) if label != f.label]
    print(
        f"error on {len(test)} other photographs: {len(wrong) / len(test):.3f}; wrong:", *wrong[:5]
    )
    shown = zip(test[:4], photographs, strict=False)
    draw_evidence("evidence.png", [(f.path.name, model.explain(p)) for f, p in shown])


if __name__ == "__main__":
    main(*sys.argv[1:])
