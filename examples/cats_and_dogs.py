"""Train on photographs, evaluate, and draw the evidence: what ``annealed pets train | evaluate | classify`` do, step by step.

python examples/cats_and_dogs.py FOLDER evidence.png

FOLDER is any folder that ``annealed pets train`` takes, if its labels.csv has a split.
"""

import sys

from annealed.models import ClassifierSettings, ImageClassifier
from annealed.pipelines.pets.data import Photographs, read_pets
from annealed.pipelines.pets.report import draw_evidence
from annealed.vision import PetFeatures

data, picture = sys.argv[1:]
files = read_pets(data)
features = PetFeatures(n_words=5000, heads=any(f.head for f in files), random_state=0)  # 31,000 named columns with heads
train = [f for f in files if f.split == "train"]
test = [f for f in files if f.split == "test"]

model = ImageClassifier(features, ClassifierSettings(n_features_to_select=500))
model.fit(Photographs(train, features.side), [f.label for f in train])
for part in model.scorers:
    print(part, model.info[part], model.selected_names(part)[:5])

photographs = Photographs(test, features.side)
labels = model.predict(photographs)
print("error on the test split:", sum(label != f.label for label, f in zip(labels, test)) / len(test))

explained = [(f.path.name, model.explain(p)) for f, p in zip(test[:4], photographs)]
draw_evidence(picture, explained)
