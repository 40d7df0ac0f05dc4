"""Settings from files of nested tables."""

import json
from dataclasses import dataclass, field, replace

import pytest
from annealed.pipelines.common.config import read_config
from annealed.pipelines.keypoints.training.stages import DetectorSettings


@dataclass(frozen=True)
class Part:
    """One table."""

    rounds: int = 7
    lowered: float = 0.5
    loss: str = "logistic"
    sizes: tuple[float, float] = (1.0, 2.0)
    mirrored: bool = True


@dataclass(frozen=True)
class Whole:
    """Tables, and an entry beside them."""

    held_out: float = 0.1
    first: Part = field(default_factory=Part)
    second: Part = field(default_factory=Part)

    def __post_init__(self):
        if self.held_out > 1:
            raise ValueError(f"held_out={self.held_out}: expected a share")


def test_tables_keep_what_the_file_does_not_name(tmp_path):
    toml, text = tmp_path / "s.toml", tmp_path / "s.json"
    toml.write_text(
        'held_out = 1\n[second]\nrounds = 3\nlowered = 1\nloss = "lorenz"\nsizes = [3, '
        "4.5]\nmirrored = false\n"
    )
    read = read_config(toml, Whole())
    assert read == Whole(1.0, Part(), Part(3, 1.0, "lorenz", (3.0, 4.5), False)) and isinstance(
        read.second.lowered, float
    )
    text.write_text(json.dumps({"first": {"rounds": 2}}))
    assert (
        read_config(text, Whole()) == Whole(first=Part(2)) and read_config(None, Whole()) == Whole()
    )


def test_every_setting_of_the_training_of_faces_can_be_set(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text(
        "[classifier]\nrounds = 1\n[guide]\nn_offsets = 9\n[face_cascade]\nlost_fraction = 0.02\n"
    )
    plain = DetectorSettings()
    wanted = replace(
        plain,
        classifier=replace(plain.classifier, rounds=1),
        guide=replace(plain.guide, n_offsets=9),
        face_cascade=replace(plain.face_cascade, lost_fraction=0.02),
    )  # fmt: skip
    assert read_config(path, plain) == wanted
    path.write_text(path.read_text().replace("lost_fraction", "lost"))
    with pytest.warns(FutureWarning, match="'face_cascade.lost' was renamed to 'lost_fraction'"):
        assert read_config(path, plain) == wanted


@pytest.mark.parametrize(
    "content, message",
    [
        ("x = 1", "setting 'x' is unknown; expected one of held_out, first, second"),
        ("[first]\nx = 1", "setting 'first.x' is unknown"),
        ("[first]\nrounds = 1.5", "first.rounds=1.5 is not valid; expected int"),
        ("[first]\nrounds = true", "first.rounds=True is not valid; expected int"),
        ("[first]\nmirrored = 1", "first.mirrored=1 is not valid; expected bool"),
        ("[first]\nsizes = 2", "first.sizes=2 is not valid; expected list of float"),
        ('[first]\nsizes = ["a"]', "expected list of float"),
        ("first = 3", "first is not a table; expected a table of settings"),
        ("held_out = 2", "held_out=2.0: expected a share"),
        ("=", "not a readable TOML or JSON file"),
        ('{"first": {"rounds": 1, "rounds": 2}}', "'rounds' is set twice; set it only once"),
    ],
)
def test_bad_entries_are_named(tmp_path, content, message):
    path = tmp_path / ("s.json" if content.startswith("{") else "s.toml")
    path.write_text(content)
    with pytest.raises(ValueError, match=message) as error:
        read_config(path, Whole())
    assert str(path) in str(error.value) and "\n" not in str(error.value)
