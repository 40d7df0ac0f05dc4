"""Augmentation of annotated photographs.

Copies differ in yaw, roll, light, blur or occlusion, or contain several faces. To change the yaw,
the depths of the landmarks are taken from the rigid model. The vertices of a mesh are the
landmarks, points on the forehead and behind the ears, and a fixed ring around the head. The mesh is
rotated, and its triangles are drawn from far to near.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import cv2
import numpy as np
from scipy.spatial import Delaunay

from ....models.keypoints.instances.shape_models import RigidModel, pose_of, rotation_of
from ....models.keypoints.windows.turned_photographs import turned, turning
from ....vision.images import image_size, read_image
from ..data import AnnotatedImage, View, annotated
from ..faces import N_LANDMARKS
from .instances.shapes import learn_rigid

# Distance from the centre of a head to the edges of its image, in IED, and the maximum IED in
# pixels (heuristic)
_REACH, _LARGEST = 4.0, 64.0
# Minimum yaw in degrees: photographs cover smaller angles (heuristic)
_LEAST = 12.0
# Remaining share of the area around a point below which the view is too oblique and the point
# counts as hidden (heuristic)
_STEEPEST = 0.15
# Position of the fixed ring around the head, in IED
_RING = 2.6
_JAW, _BROWS, _BESIDE = np.arange(17), np.arange(17, 27), np.array([0, 1, 2, 3, 13, 14, 15, 16])
_INNER = np.r_[27:36, 48:68]  # nose and mouth, which may cover the cheek
# Offsets from brows and jaw line, in IED: x outwards, y down, z away from the viewer (heuristic)
_FOREHEAD = ((0.0, -0.45, 0.1), (-0.05, -0.85, 0.3), (-0.1, -1.15, 0.8))
_SIDES = ((0.15, 0.0, 0.15), (0.35, 0.0, 0.5))
# Distance from the centre of a pasted face to the edges of its patch, in IED, and the minimum and
# maximum IED of pasted faces in pixels
_AROUND, _PASTED = 2.2, (28.0, 50.0)


def _part_around(
    image: AnnotatedImage, middle: np.ndarray, reach: float, factor: float
) -> tuple[tuple[int, ...], tuple[int, ...], Callable[[np.ndarray], np.ndarray]]:
    """Return a box x0, y0, x1, y1 around a point of a photograph, its width and height after
    resizing by a factor, and the positions of points (..., 2) in it."""
    low = np.maximum(np.floor(middle - reach), 0).astype(int)
    high = np.minimum(np.ceil(middle + reach), image_size(image.path)).astype(int)
    size = np.maximum(np.rint((high - low) * factor), 8).astype(int)
    return (
        (*low.tolist(), *high.tolist()),
        tuple(size.tolist()),
        lambda xy: (xy - low + 0.5) * (size / (high - low)) - 0.5,
    )


def _resized(box: tuple[int, ...], size: tuple[int, ...], pixels: np.ndarray) -> np.ndarray:
    return np.asarray(
        cv2.resize(pixels[box[1] : box[3], box[0] : box[2]], size, interpolation=cv2.INTER_AREA),
        np.uint8,
    )


@dataclass(frozen=True)
class _Mesh:
    """Vertices (n, 2) in the photograph and in the rotated image, and triangles from far to
    near."""

    before: np.ndarray
    after: np.ndarray
    triangles: np.ndarray

    def labels(self, width: int, height: int) -> np.ndarray:
        """Return the index of the triangle at each pixel (height, width), int32, of the rotated
        image."""
        shown = np.zeros((height, width), np.int32)
        corners = np.rint(self.after[self.triangles] * 16).astype(np.int32)
        for number, triangle in enumerate(corners):
            cv2.fillConvexPoly(shown, triangle, number, shift=4)
        return shown

    def seen(self, n: int, shown: np.ndarray) -> np.ndarray:
        """Return a mask (n,) of the first n vertices that are not hidden by another triangle."""
        height, width = shown.shape
        x, y = np.rint(self.after[:n]).astype(int).T
        seen = np.zeros(n, bool)
        for i, j in np.ndindex(3, 3):
            around = shown[np.clip(y + j - 1, 0, height - 1), np.clip(x + i - 1, 0, width - 1)]
            seen |= (self.triangles[around] == np.arange(n)[:, None]).any(axis=1)
        return seen

    def shrinkage(self) -> np.ndarray:
        """Return the remaining share (n,) of the area around each vertex, which is negative if seen
        from behind."""
        areas = []
        for corners in (self.before[self.triangles], self.after[self.triangles]):
            (a, b), (c, d) = (corners[:, 1] - corners[:, 0]).T, (corners[:, 2] - corners[:, 0]).T
            areas.append(np.repeat(a * d - b * c, 3))
        of = self.triangles.ravel()
        sums = [
            np.bincount(of, area * np.sign(areas[0]), minlength=len(self.before)) for area in areas
        ]
        return sums[1] / np.maximum(sums[0], 1e-9)

    def outline(self, points: np.ndarray, right: bool, shown: np.ndarray) -> np.ndarray:
        """Return the x-coordinate (n,) of the right or left edge of the face at the height of each
        point (n, 2), or that of the point if the face ends before it."""
        inner = np.isin(self.triangles, _INNER).all(axis=1)
        cheek = np.asarray((self.triangles < N_LANDMARKS).all(axis=1) & ~inner)
        face = cheek[shown[np.clip(np.rint(points[:, 1]).astype(int), 0, len(shown) - 1)]]
        columns = np.where(face, np.arange(face.shape[1]), -np.inf if right else np.inf)
        return (
            np.maximum(points[:, 0], columns.max(axis=1))
            if right
            else np.minimum(points[:, 0], columns.min(axis=1))
        )

    def draw(self, pixels: np.ndarray) -> np.ndarray:
        """Draw the rotated image of a photograph (height, width, 3), at the same size."""
        height, width = pixels.shape[:2]
        one = np.ones((len(self.triangles), 3, 1))
        after, before = np.dstack([self.after[self.triangles], one]), self.before[self.triangles]
        maps = np.linalg.pinv(after) @ before  # (n, 3, 2), from rotated to original pixels
        of = maps[self.labels(width, height)]
        x, y = np.arange(width)[None, :, None], np.arange(height)[:, None, None]
        source = (of[:, :, 0] * x + of[:, :, 1] * y + of[:, :, 2]).astype(np.float32)
        return cv2.remap(
            pixels,
            source[..., 0],
            source[..., 1],
            cv2.INTER_LINEAR,
            borderMode=cv2.BORDER_REPLICATE,
        )


def _mesh(
    landmarks: np.ndarray, degrees: float, rigid: RigidModel, width: int, height: int
) -> _Mesh:
    """Return the mesh of a head with landmarks (68, 2), rotated about its axis."""
    rotation, scale, _ = rigid.fit(landmarks @ [1, 1j])
    pose = pose_of(rotation)
    turn = rotation_of(pose._replace(yaw=pose.yaw + np.radians(degrees))) @ rotation.T
    head = np.column_stack([landmarks, scale * rigid.points @ rotation[2]])
    axis = head[_JAW[[0, -1]]].mean(axis=0)  # between the ears
    cosine, sine = np.cos(pose.roll), np.sin(pose.roll)
    upright = scale * np.array([[cosine, sine, 0], [-sine, cosine, 0], [0, 0, 1]])
    outwards = np.sign(rigid.points[:, 0])
    rows = [(_BROWS, by) for by in _FOREHEAD] + [(_BESIDE, by) for by in _SIDES]
    further = [
        head[of] + (np.array(by) * np.column_stack([outwards[of], np.ones((len(of), 2))])) @ upright
        for of, by in rows
    ]
    head = np.concatenate([head, *further])
    turned = (head - axis) @ turn.T + axis
    angle = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    ring = landmarks.mean(axis=0) + _RING * scale * np.column_stack([np.cos(angle), np.sin(angle)])
    frame = [
        (x, y)
        for x in (-1, width / 2, width)
        for y in (-1, height / 2, height)
        if (x, y) != (width / 2, height / 2)
    ]
    still = np.concatenate([ring, frame])
    depth = np.append(turned[:, 2], np.full(len(still), turned[:, 2].max() + scale))
    before = np.concatenate([head[:, :2], still])
    triangles = Delaunay(before).simplices
    order = np.argsort(-depth[triangles].mean(axis=1), kind="stable")
    return _Mesh(before, np.concatenate([turned[:, :2], still]), triangles[order])


def turned_head(image: AnnotatedImage, degrees: float, rigid: RigidModel) -> AnnotatedImage:
    """Rotate the only face in a photograph towards the right of the image.

    The result shows only the head and its surroundings. If necessary, it is reduced until the eyes
    are at most 64 pixels apart.
    """
    assert image.landmarks is not None
    landmarks, ied = image.landmarks[0], float(image.reference_length[0])
    box, size, shown = _part_around(
        image, landmarks.mean(axis=0), _REACH * ied, min(1.0, _LARGEST / ied)
    )
    mesh = _mesh(shown(landmarks), degrees, rigid, *size)
    triangles = mesh.labels(*size)
    hidden = ~(
        mesh.seen(len(landmarks), triangles) & (mesh.shrinkage()[: len(landmarks)] >= _STEEPEST)
    )
    points = mesh.after[: len(landmarks)].copy()
    points[_JAW, 0] = np.where(
        hidden[_JAW], mesh.outline(points[_JAW], degrees > 0, triangles), points[_JAW, 0]
    )
    schema = image.schema
    faces = np.array(
        [[points[list(schema.landmarks[name])].mean(axis=0) for name in schema.keypoints]]
    )
    visible = (
        np.array([[not hidden[list(schema.landmarks[name])].all() for name in schema.keypoints]])
        & image.visible
    )
    ignore = shown(image.ignore.reshape(-1, 2)).reshape(-1, 4)
    view = partial(_turned_pixels, mesh, box, size)
    return replace(
        image, instances=faces, visible=visible, ignore=ignore, landmarks=points[None], view=view
    )


def _turned_pixels(
    mesh: _Mesh, box: tuple[int, ...], size: tuple[int, ...], pixels: np.ndarray
) -> np.ndarray:
    return mesh.draw(_resized(box, size, pixels))


def yaw_augmentations(
    images: Sequence[AnnotatedImage], known: Sequence[AnnotatedImage], most: float, seed: int = 0
) -> list[AnnotatedImage]:
    """Return rotated copies of the photographs that contain one face with landmarks.

    Heads are rotated to either side by 12 to ``most`` degrees of yaw. The rigid model is learnt
    from the ``known`` photographs. If these show all faces from the same direction, the depth
    cannot be estimated, and the result is empty.
    """
    usable = [len(image.instances) == 1 and image.landmarks is not None for image in images]
    if not (most and any(usable)):
        return []
    faces = np.concatenate([image.points for image in annotated(known)])
    schema = images[0].schema
    try:
        rigid = RigidModel(
            learn_rigid(faces[np.isfinite(faces).all(axis=1)], schema).points[len(schema.anchors) :]
        )
    except ValueError:
        return []
    made = []
    for number in np.flatnonzero(usable).tolist():
        rng = np.random.default_rng([seed, number])
        made.append(
            turned_head(
                images[number], rng.choice([-1, 1]) * rng.uniform(min(_LEAST, most), most), rigid
            )
        )
    return made


def rolled(image: AnnotatedImage, degrees: float) -> AnnotatedImage:
    """Rotate a photograph counter-clockwise about its centre without cropping it."""
    width, height = image_size(image.path)
    return image.moved(turning(height, width, degrees)[0], partial(turned, degrees=degrees))


def _lit(
    middle: np.ndarray, ied: float, direction: float, darkest: float, pixels: np.ndarray
) -> np.ndarray:
    """Apply light that decreases across the face from 1 to ``darkest``, along a direction in
    radians."""
    height, width = pixels.shape[:2]
    x, y = np.arange(width) - middle[0], np.arange(height)[:, None] - middle[1]
    position = (np.cos(direction) * x + np.sin(direction) * y) / ied
    light = darkest ** np.clip(position / 2 + 0.5, 0, 1)
    return np.rint(pixels * light[..., None]).astype(np.uint8)


def _dimmed(light: float, pixels: np.ndarray) -> np.ndarray:
    """Scale the light by a factor."""
    return np.rint(pixels * light).astype(np.uint8)


def _covered(middle: np.ndarray, ied: float, pixels: np.ndarray) -> np.ndarray:
    """Cover the face with a grey square with a side of 1.5 IED around its centre."""
    (left, top), (right, bottom) = (
        np.rint(middle + side * ied).astype(int).clip(0) for side in (-0.75, 0.75)
    )
    pixels = pixels.copy()
    pixels[top:bottom, left:right] = 110
    return pixels


def pasted(images: Sequence[AnnotatedImage], rng: np.random.Generator) -> AnnotatedImage:
    """Paste the first faces of several photographs side by side, at different sizes."""
    parts, faces, landmarks, left = [], [], [], 0
    for image in images:
        middle, ied = np.nanmean(image.instances[0], axis=0), float(image.reference_length[0])
        box, size, shown = _part_around(
            image, middle, _AROUND * ied, float(np.exp(rng.uniform(*np.log(_PASTED)))) / ied
        )
        parts.append((image.path, box, size))
        faces.append(shown(image.instances[0]) + [left, 0])
        landmarks.append(None if image.landmarks is None else shown(image.landmarks[0]) + [left, 0])
        left += size[0]
    known = None if any(one is None for one in landmarks) else np.array(landmarks)
    return replace(
        images[0],
        instances=np.array(faces),
        visible=np.concatenate([image.visible[:1] for image in images]),
        ignore=np.zeros((0, 4)),
        landmarks=known,
        view=partial(_pasted, parts),
    )


def _pasted(parts: Sequence[tuple], pixels: np.ndarray) -> np.ndarray:
    photographs = [pixels, *(read_image(path) for path, _, _ in parts[1:])]
    shown = [
        _resized(box, size, photograph) for photograph, (_, box, size) in zip(photographs, parts)
    ]
    height = max(part.shape[0] for part in shown)
    return np.concatenate(
        [np.pad(part, ((0, height - len(part)), (0, 0), (0, 0)), mode="edge") for part in shown],
        axis=1,
    )


def hard_augmentations(
    images: Sequence[AnnotatedImage], seed: int = 0
) -> dict[str, list[AnnotatedImage]]:
    """Return one image per type of augmentation for each photograph with a single face."""
    some = [image for image in images if len(image.instances) == 1 and image.view is None]
    rng = np.random.default_rng([seed, len(some)])
    made: dict[str, list[AnnotatedImage]] = {}
    for number, image in enumerate(some):
        others = [some[(number + step) % len(some)] for step in (0, 1, 2)]
        middle, ied = np.nanmean(image.instances[0], axis=0), float(image.reference_length[0])
        views: dict[str, AnnotatedImage | View] = {
            "rolled": rolled(image, float(rng.choice([-1, 1]) * rng.uniform(8, 28))),
            "uneven light": partial(
                _lit, middle, ied, float(rng.uniform(0, 2 * np.pi)), float(rng.uniform(0.05, 0.3))
            ),
            "dim": partial(_dimmed, float(rng.uniform(0.08, 0.3))),
            "blurred": partial(
                cv2.GaussianBlur, ksize=(0, 0), sigmaX=float(rng.uniform(0.02, 0.06)) * ied
            ),
            "covered": partial(
                _covered,
                middle + ied * np.array([rng.uniform(-0.8, 0.8), rng.choice([-0.7, 1.0])]),
                ied,
            ),
            "three in one": pasted(others, rng),
        }
        for name, view in views.items():
            made.setdefault(name, []).append(
                view if isinstance(view, AnnotatedImage) else replace(image, view=view)
            )
    return made


def hard_views(images: Sequence[AnnotatedImage], seed: int) -> list[AnnotatedImage]:
    """Return modified copies of the photographs that contain a single object.

    The copies are rotated, unevenly lit, darkened, blurred or partly covered.
    """
    kinds = hard_augmentations(images, seed)
    return [image for kind in kinds if kind != "three in one" for image in kinds[kind]]
