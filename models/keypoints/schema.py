"""Definition of the points of an object: names, mirror pairs, skeleton and unit of distance."""

import tomllib
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

#: Reference length of objects without two named points, as a fraction of the square root of the
#: box's area. Heuristic: about the distance between two points that fit in one window.
BOX_SHARE = 0.4

Names = tuple[str, ...]


@dataclass(frozen=True)
class Schema:
    """Names and relations of the points of one category of objects, stored in the model file.

    The unit of all distances is the *reference length* of an object. It is the distance between two
    named points, or 0.4 times the square root of the area of the object's box.

    Parameters
    ----------
    category : str
        Name of the category.
    keypoints : tuple of str
        Names of the points, in the order of the annotations.
    mirror : tuple of pairs of str
        Pairs of points that are exchanged in the mirror image of an object.
    skeleton : tuple of pairs of str
        Pairs of points connected by a line in drawings.
    length : tuple of str
        Two points whose distance is the reference length; empty if it is computed from the box.
    mirrored : bool
        Whether the mirror image of an object is also a valid object.
    upright : bool
        Whether objects are upright. Otherwise, objects with any rotation are detected.
    anchors : tuple of str
        Points that have a window detector; empty if they have not been chosen yet.
    landmarks : dict of str to tuple of int
        Indices of the landmarks whose mean is each keypoint; empty if landmarks are not annotated.
    landmark_mirror : tuple of int
        Index of each landmark in the mirror image.

    Raises
    ------
    ValueError
        If a name is missing, unknown or duplicated.

    Examples
    --------
    >>> needle = Schema("needle", ("pivot", "tip"), length=("pivot", "tip"))
    >>> needle.lengths(np.array([[[0, 0], [3, 4]]]))
    array([5.])
    """

    category: str
    keypoints: Names
    mirror: tuple[Names, ...] = ()
    skeleton: tuple[Names, ...] = ()
    length: Names = ()
    mirrored: bool = False
    upright: bool = True
    anchors: Names = ()
    landmarks: dict[str, tuple[int, ...]] = field(default_factory=dict)
    landmark_mirror: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if len(self.keypoints) < 2 or len(set(self.keypoints)) < len(self.keypoints):
            raise ValueError(
                f"keypoints={list(self.keypoints)} is not valid; "
                "expected two or more distinct names"
            )
        pairs = [*self.mirror, *self.skeleton, *([self.length] if self.length else [])]
        for names in (*pairs, self.anchors, self.landmarks):
            for name in names:
                if name not in self.keypoints:
                    raise ValueError(
                        f"{name!r} is not among the keypoints {', '.join(self.keypoints)}"
                    )
        for pair in pairs:
            if len(pair) != 2 or pair[0] == pair[1]:
                raise ValueError(
                    f"{list(pair)} is not a pair of keypoints; expected two different names"
                )
        paired = [name for pair in self.mirror for name in pair]
        if len(set(paired)) < len(paired):
            raise ValueError(
                f"mirror={[list(pair) for pair in self.mirror]} is not valid; "
                "expected each keypoint in at most one pair"
            )
        if sorted(self.landmark_mirror) != list(range(len(self.landmark_mirror))):
            raise ValueError(
                "landmark_mirror is not a permutation of the landmarks; expected each landmark "
                "exactly once"
            )

    @cached_property
    def opposite(self) -> dict[str, str]:
        """Name of the mirror image of each keypoint."""
        swapped = {a: b for pair in self.mirror for a, b in (pair, pair[::-1])}
        return {name: swapped.get(name, name) for name in self.keypoints}

    @cached_property
    def mirror_order(self) -> list[int]:
        """Index of the mirror image of each keypoint, in the order of the keypoints."""
        return [self.keypoints.index(self.opposite[name]) for name in self.keypoints]

    @property
    def flips(self) -> tuple[bool, ...]:
        """Whether each copy of a training image is mirrored: (False, True), or (False,)."""
        return (False, True) if self.mirrored else (False,)

    def alike(self, names: Names) -> list[list[int]]:
        """Group the keypoints in ``names``: a keypoint and its mirror image are in the same group.

        Each group is returned as a list of indices in ``names``.
        """
        groups: dict[frozenset, list[int]] = {}
        for i, name in enumerate(names):
            groups.setdefault(
                frozenset({name, self.opposite[name]} if self.mirrored else {name}), []
            ).append(i)
        return list(groups.values())

    def trained_as(self, keypoint: str) -> str:
        """Return the keypoint in the same mirror pair for which a model is trained."""
        return (
            min(keypoint, self.opposite[keypoint], key=self.keypoints.index)
            if self.mirrored
            else keypoint
        )

    def lengths(self, points: np.ndarray, boxes: np.ndarray | None = None) -> np.ndarray:
        """Compute the reference lengths of n objects in pixels.

        ``points`` has shape (n, n_keypoints, 2) and contains NaN for unknown points. ``boxes`` has
        shape (n, 4); by default, the boxes are the bounding boxes of the points.
        """
        if self.length:
            a, b = (points[:, self.keypoints.index(name)] for name in self.length)
            return np.hypot(*(a - b).T)
        if boxes is None:
            boxes = np.concatenate(
                [np.fmin.reduce(points, axis=1), np.fmax.reduce(points, axis=1)], axis=1
            )
        return BOX_SHARE * np.sqrt(np.prod(boxes[:, 2:] - boxes[:, :2], axis=1))

    def to_keypoints(self, n_points: int) -> np.ndarray:
        """Return the averaging matrix that maps refined points to keypoints.

        The matrix has shape (n_keypoints, n_points). The refined points are the landmarks, or the
        keypoints if there are no landmarks.
        """
        if n_points == len(self.keypoints):
            return np.eye(n_points)
        matrix = np.zeros((len(self.keypoints), n_points))
        for row, name in zip(matrix, self.keypoints):
            row[list(self.landmarks[name])] = 1 / len(self.landmarks[name])
        return matrix

    def point_order(self, n_points: int) -> np.ndarray:
        """Return the index of each point in the mirror image; empty if ``mirrored`` is False."""
        order = self.mirror_order if n_points == len(self.keypoints) else self.landmark_mirror
        return np.array(order if self.mirrored else [], np.int32)

    def mirrored_points(self, points: np.ndarray, width: int) -> np.ndarray:
        """Mirror points, given as complex numbers, in a photograph of the given width."""
        order = self.point_order(len(points))
        return width - 1 - points[order].real + 1j * points[order].imag

    def with_anchors(self, anchors: Names) -> "Schema":
        """Return the schema with the given anchors, and with these keypoints first."""
        return replace(
            self,
            keypoints=(*anchors, *(name for name in self.keypoints if name not in anchors)),
            anchors=tuple(anchors),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as plain data for the header of a file."""
        return {name: value for name, value in asdict(self).items() if value not in ((), {})}

    @classmethod
    def from_dict(cls, data: Any) -> "Schema":
        """Create a schema from the output of :meth:`to_dict` or from the data of a file.

        A ValueError is raised if the schema is invalid.
        """
        known, flags = {f.name for f in fields(cls)}, ("mirrored", "upright")
        if (
            not isinstance(data, dict)
            or not set(data) <= known
            or not {"category", "keypoints"} <= set(data)
        ):
            raise ValueError(
                "the schema has missing or unknown keys; "
                "expected category and keypoints, and optionally "
                f"{', '.join(sorted(known - {'category', 'keypoints'}))}"
            )
        values = {name: value if name in flags else _frozen(value) for name, value in data.items()}
        if not isinstance(values["category"], str) or any(
            not isinstance(values.get(name, True), bool) for name in flags
        ):
            raise ValueError(
                "the schema has values of the wrong type; "
                "expected text for category, and true or false for mirrored and upright"
            )
        for name in known - {"category", "landmarks", "landmark_mirror", *flags}:
            kind = tuple if name in ("mirror", "skeleton") else str
            if not isinstance(values.get(name, ()), tuple) or not all(
                isinstance(v, kind) for v in values.get(name, ())
            ):
                raise ValueError(
                    f"{name}={data[name]!r:.60} is not valid in the schema; "
                    "expected names of keypoints"
                )
        return cls(**{"mirrored": bool(values.get("mirror")), **values})


def _frozen(value: Any) -> Any:
    """Convert nested lists to tuples."""
    if isinstance(value, dict):
        return {key: _frozen(entry) for key, entry in value.items()}
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else value


def read_schema(path: str | Path) -> Schema:
    """Read a schema from a TOML file; raise a ValueError that names the file if it is invalid."""
    try:
        return Schema.from_dict(tomllib.loads(Path(path).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from None
