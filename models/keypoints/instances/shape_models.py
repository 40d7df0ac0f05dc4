"""Shape models: a 2-D model with Gaussian deviations, a rigid 3-D model, and transforms."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import cv2
import numpy as np

_STEPS = 10  # maximum number of Gauss-Newton steps; about five suffice to converge
_CONVERGED = 1e-6  # change of the rotation matrix

#: reference lengths: faces are duplicates if the mean distance of their keypoints does not exceed
#: this value (heuristic).
SAME_INSTANCE = 0.4
# distance in reference lengths, and ratio of sizes: a hypothesis this similar to a known face is
# not completed. The distance is half the radius within which candidates support a pair, stricter
# than ``SAME_INSTANCE``, since completion may still move the keypoints (heuristic values).
_INSIDE, _ALIKE = 0.175, 1.25


@dataclass(frozen=True)
class SimilarityTransform:
    """Similarity transform from shape coordinates to image pixels.

    The transform is ``image = scale_rotation * shape + translation``, where points are complex
    numbers x + iy and the unit of shape coordinates is the reference length. The modulus of
    ``scale_rotation`` is the reference length in image pixels, and its argument is the rotation in
    radians.
    """

    scale_rotation: complex
    translation: complex

    @classmethod
    def least_squares(cls, shape: np.ndarray, image: np.ndarray) -> "SimilarityTransform":
        """Fit the transform from n points of a shape to n image points by least squares."""
        centre, middle = shape.sum() / len(shape), image.sum() / len(image)  # faster than mean
        centred = shape - centre
        scale_rotation = complex(np.vdot(centred, image - middle) / np.vdot(centred, centred).real)
        return cls(scale_rotation, middle - scale_rotation * centre)

    @property
    def reference_length(self) -> float:
        """Reference length in image pixels."""
        return abs(self.scale_rotation)

    def to_image(self, shape: np.ndarray) -> np.ndarray:
        """Convert shape coordinates to image coordinates, both given as complex numbers."""
        return self.scale_rotation * shape + self.translation

    def to_shape(self, image: np.ndarray) -> np.ndarray:
        """Convert image coordinates to shape coordinates, both given as complex numbers."""
        return (image - self.translation) / self.scale_rotation


@dataclass(frozen=True)
class ShapeModel:
    """Point distribution model of keypoints, with a mean shape and Gaussian deviations from it.

    Parameters
    ----------
    keypoints : tuple of str
        Names of the n keypoints.
    anchors : ndarray of shape (n_anchors,), int
        Indices of the anchors, which are the detected keypoints. The other keypoints are predicted
        from them.
    mean : ndarray of shape (n, 2)
        Mean shape in units of the reference length.
    covariance : ndarray of shape (2 n, 2 n)
        Covariance of the deviations x0, y0, x1, y1, ... after aligning the anchors. If the anchors
        are the first keypoints, the matrix may contain only the rows of the anchors.
    noise : float
        Standard deviation of the position of a detected anchor, in reference lengths.
    """

    keypoints: tuple[str, ...]
    anchors: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray
    noise: float

    @cached_property
    def mean_points(self) -> np.ndarray:
        """Mean shape as n complex numbers."""
        return self.mean[:, 0] + 1j * self.mean[:, 1]

    def align(self, points: np.ndarray, which: np.ndarray) -> SimilarityTransform:
        """Compute the least-squares similarity transform from the mean shape to image points.

        ``points`` contains two or more image points as complex numbers, and ``which`` contains
        their indices in the shape.
        """
        return SimilarityTransform.least_squares(self.mean_points[which], points)

    def predict(
        self, anchors: np.ndarray, which: np.ndarray
    ) -> tuple[np.ndarray, SimilarityTransform]:
        """Predict all n keypoints, as complex numbers, from two or more anchors.

        ``which`` contains the indices of the given anchors. The deviations from the mean shape are
        predicted by their conditional mean. If anchors are missing, the shape is aligned several
        times, using their predicted positions. The transform is also returned.
        """
        everywhere, at_missing, inverse = self._gains(which)

        def conditional_mean(gains: tuple, transform: SimilarityTransform) -> np.ndarray:
            deviation = transform.to_shape(anchors) - self.mean_points[which]
            mean, by_coordinate = gains
            return transform.to_image(mean + by_coordinate @ deviation.view(np.float64))

        transform = self.align(anchors, which)
        for _ in range(0 if len(which) == len(self.anchors) else 4):
            filled = np.concatenate([anchors, conditional_mean(at_missing, transform)])
            transform = SimilarityTransform(*(inverse @ filled).tolist())
        return conditional_mean(everywhere, transform), transform

    def _gains(self, which: np.ndarray) -> tuple[tuple, tuple, np.ndarray]:
        """Return the cached conditional means of all keypoints and of the missing anchors, and the
        matrix (2, n_anchors) that yields the transform from the given and the missing anchors.

        A conditional mean consists of the mean and the displacements, of shape (n, 2 n_which), per
        unit of x0, y0, x1, y1, ... of the given anchors, all complex.
        """
        known = self.__dict__.setdefault("_known_gains", {})
        if which.tobytes() not in known:
            columns = np.stack([2 * which, 2 * which + 1], axis=1).ravel()
            given = self.covariance[np.ix_(columns, columns)] + self.noise**2 * np.eye(len(columns))
            gain = np.linalg.solve(given, self.covariance[columns]).T
            gains = self.mean_points, gain[::2] + 1j * gain[1::2]
            missing = self.anchors[(self.anchors[:, None] != which).all(axis=1)]
            at_missing = tuple(part[missing] for part in gains)
            positions = self.mean_points[np.concatenate([which, missing])]
            inverse = np.linalg.pinv(np.stack([positions, np.ones_like(positions)], axis=1))
            known[which.tobytes()] = gains, at_missing, inverse
        return known[which.tobytes()]


def learn_shape(
    faces: np.ndarray,
    visible: np.ndarray,
    keypoints: tuple[str, ...],
    anchors: np.ndarray,
    noise: float,
    lengths: np.ndarray,
) -> ShapeModel:
    """Learn a shape model from annotated faces by generalised Procrustes analysis.

    ``faces``, of shape (n_faces, n, 2), includes mirror images. A face is dropped if an anchor is
    hidden. Other hidden points are replaced by their predicted positions. ``lengths`` contains the
    reference lengths of the faces in pixels, which determine the scale of the mean shape. The mean
    shape is rotated so that the mean rotation of the transforms to the faces is zero.
    """
    usable = visible[:, anchors].all(axis=1) & np.isfinite(faces).all(axis=(1, 2))
    points = (faces[..., 0] + 1j * faces[..., 1])[usable]
    seen, lengths = visible[usable], lengths[usable]
    mean = points[0] - points[0, anchors].mean()
    for _ in range(10):
        model = ShapeModel(
            keypoints, anchors, np.stack([mean.real, mean.imag], axis=1), np.zeros((1, 1)), noise
        )
        transforms = [model.align(p[anchors], anchors) for p in points]
        aligned = np.stack([transform.to_shape(p) for transform, p in zip(transforms, points)])
        mean = np.nanmean(np.where(seen, aligned, np.nan), axis=0)
        units = np.array([transform.scale_rotation for transform in transforms])
        turn = np.mean(units / abs(units))
        mean = (
            (mean - mean[anchors].mean())
            * np.exp(np.mean(np.log(abs(units) / lengths)))
            * turn
            / abs(turn)
        )
    model = replace(model, mean=np.stack([mean.real, mean.imag], axis=1))
    aligned = np.stack([model.align(p[anchors], anchors).to_shape(p) for p in points])
    deviation = np.where(seen, aligned - mean, 0)
    flat = np.stack([deviation.real, deviation.imag], axis=2).reshape(len(points), -1)
    return replace(model, covariance=flat.T @ flat / len(points))


class Pose(NamedTuple):
    """Rotation of a head in radians, which is zero for an upright head seen from the front.

    Parameters
    ----------
    yaw : float
        Yaw; positive if the face looks to the right-hand side of the image.
    pitch : float
        Pitch; positive if the face looks down.
    roll : float
        Roll; positive if the face is rotated clockwise in the image.
    """

    yaw: float
    pitch: float
    roll: float


def rotation_of(pose: Pose) -> np.ndarray:
    """Compute the 3 x 3 rotation matrix of a pose.

    The matrix applies yaw, then pitch, then roll. The x-axis points right, the y-axis down, and the
    z-axis away from the viewer.
    """
    (sy, sp, sr), (cy, cp, cr) = np.sin(pose), np.cos(pose)
    yaw = np.array([[cy, 0, -sy], [0, 1, 0], [sy, 0, cy]])
    pitch = np.array([[1, 0, 0], [0, cp, -sp], [0, sp, cp]])
    roll = np.array([[cr, -sr, 0], [sr, cr, 0], [0, 0, 1]])
    return roll @ pitch @ yaw


def pose_of(rotation: np.ndarray) -> Pose:
    """Compute the pose of a 3 x 3 rotation matrix.

    This is the inverse of :func:`rotation_of` for pitches below 90 degrees.
    """
    yaw = np.arctan2(rotation[2, 0], rotation[2, 2])
    pitch = np.arcsin(np.clip(rotation[2, 1], -1, 1))
    roll = np.arctan2(-rotation[0, 1], rotation[1, 1])
    return Pose(float(yaw), float(pitch), float(roll))


@dataclass(frozen=True)
class RigidModel:
    """Points of a rigid face, learnt by factorisation from the annotations of many faces [1]_.

    Parameters
    ----------
    points : ndarray of shape (n, 3), float64
        Points in units of the reference length. The x-axis points to the right of the image, the
        y-axis down, and the z-axis away from the viewer.

    References
    ----------
    .. [1] C. Tomasi, T. Kanade, "Shape and Motion from Image Streams under Orthography: a
           Factorization Method", International Journal of Computer Vision 9 (1992).
    """

    points: np.ndarray

    def project(self, rotation: np.ndarray, scale: float, translation: complex) -> np.ndarray:
        """Project the points to the image under weak perspective, as complex numbers."""
        seen = self.points @ rotation[:2].T
        return scale * (seen[:, 0] + 1j * seen[:, 1]) + translation

    def fit(
        self, points: np.ndarray, which: np.ndarray | None = None
    ) -> tuple[np.ndarray, float, complex]:
        """Fit a weak-perspective view to image points by least squares.

        The least-squares affine camera is projected to the nearest rotation and scale, which are
        then refined by Gauss-Newton steps on the rotation vector and the scale.

        Parameters
        ----------
        points : ndarray of shape (m,), complex
            Image points.
        which : ndarray of shape (m,), int, optional
            Indices of four or more points of the model that are not coplanar; by default, all
            points.

        Returns
        -------
        rotation : ndarray of shape (3, 3)
        scale : float
            Number of image pixels per reference length.
        translation : complex
        """
        model = self.points if which is None else self.points[which]
        centre, middle = model.mean(axis=0), points.mean()
        model = model - centre
        gram, products = model.T @ model, model.T @ (points - middle)
        # A small ridge penalty keeps the view frontal where nearly coplanar points do not determine
        # the tilt towards the viewer.
        ridge = 1e-2 * np.trace(gram) / 3
        upright = (products[0] - 1j * products[1]) / max(gram[0, 0] + gram[1, 1], 1e-12)
        wanted = products + ridge * upright * np.array([1, 1j, 0])
        camera = np.linalg.inv(gram + ridge * np.eye(3)) @ wanted
        # orthogonal factor of the polar decomposition of the rows x, y of the camera
        x, y = camera.real, camera.imag
        xx, xy, yy = float(x @ x), float(x @ y), float(y @ y)
        root = max(xx * yy - xy * xy, 1e-300) ** 0.5
        scale = (xx + yy + 2 * root) ** 0.5 / 2
        across, down = (yy + root) * x - xy * y, (xx + root) * y - xy * x
        (a, b, c), (d, e, f) = (np.stack([across, down]) / (2 * scale * root)).tolist()
        rotation = np.array([[a, b, c], [d, e, f], [b * f - c * e, c * d - a * f, a * e - b * d]])
        products = np.stack([products.real, products.imag], axis=1)
        for _ in range(_STEPS):
            before = rotation
            rotation, scale = _gauss_newton(gram, products, rotation, scale)
            if abs(rotation - before).max() < _CONVERGED:
                break
        shift = scale * (rotation[:2] @ centre)
        return rotation, scale, middle - complex(shift[0], shift[1])


def _gauss_newton(
    gram: np.ndarray, products: np.ndarray, rotation: np.ndarray, scale: float
) -> tuple[np.ndarray, float]:
    """Take one Gauss-Newton step on the scale and on the rotation, which is multiplied from the
    left by a small rotation.

    The normal equations depend only on the products of the coordinates of the centred points,
    ``gram`` of shape (3, 3), and on those with the image points, ``products`` of shape (3, 2).
    """
    moments = rotation @ gram @ rotation.T
    (xx, _, _), (_, yy, _), (zx, zy, zz) = moments.tolist()
    (ex, ey), (fx, fy), (gx, gy) = (rotation @ products - scale * moments[:, :2]).tolist()
    # The unknowns are the rotations about x, y and z, and the change of scale divided by the scale.
    # The rows of the normal matrix are (zz, 0, -zx, -zy), (0, zz, -zy, zx), (-zx, -zy, xx + yy, 0)
    # and (-zy, zx, 0, xx + yy). The rotations about x and y are eliminated.
    ridge = 1e-6 * (2 * zz + (xx + yy) * (1 + scale**-2))
    zz, rest = zz + ridge, xx + yy - (zx * zx + zy * zy) / (zz + ridge)
    roll = (ey - fx + (zy * gx - zx * gy) / zz) / (rest + ridge)
    growth = (ex + fy - (zy * gy + zx * gx) / zz) / (rest + ridge * scale**2)
    turn = np.array([zx * roll + zy * growth - gy, zy * roll - zx * growth + gx, zz * roll])
    return np.asarray(cv2.Rodrigues(turn / (scale * zz))[0]) @ rotation, scale + growth


def factorise(shapes: np.ndarray, mirror: np.ndarray) -> RigidModel:
    """Compute the rigid model of annotated faces and their mirror images by factorisation.

    Parameters
    ----------
    shapes : ndarray of shape (n_faces, n), complex
        Image points of each face. The first two points are the eyes, whose distance is the unit of
        length. They are followed by the sides of the nose.
    mirror : ndarray of shape (n,), int
        Index of each point in the mirrored face.

    Returns
    -------
    RigidModel
        Symmetric model, oriented so that the mean pose of the faces has a pitch of zero.

    Raises
    ------
    ValueError
        If all faces have the same pose, so that their depth cannot be estimated.
    """
    both = np.concatenate([shapes, -shapes.real[:, mirror] + 1j * shapes.imag[:, mirror]])
    both = both - both.mean(axis=1, keepdims=True)
    # Faces are rotated upright and scaled to one size, so that they differ only in yaw and pitch.
    both = both / np.sqrt((abs(both) ** 2).mean(axis=1, keepdims=True))
    mean = both[0]
    for _ in range(5):
        both = both * np.exp(-1j * np.angle(both @ mean.conj()))[:, None]
        mean = both.mean(axis=0)
        eyes = mean[0] - mean[1]
        mean = mean * abs(eyes) / eyes
    # x and y, face by face
    rows = np.stack([both.real, both.imag], axis=1).reshape(-1, shapes.shape[1])
    _, singular, right = np.linalg.svd(rows, full_matrices=False)
    if singular[2] < 1e-6 * singular[0]:
        raise ValueError(
            "all annotated faces have the same pose; expected faces in different poses"
        )
    affine = right[:3]
    motion = rows @ affine.T  # (2 n_faces, 3)
    a, b = motion[0::2], motion[1::2]
    # Metric upgrade: a symmetric Q of mean size one with a Q a = b Q b and a Q b = 0 for every
    # face.
    pairs = [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]

    def products(u: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.stack(
            [u[:, i] * v[:, j] + (u[:, j] * v[:, i] if i != j else 0) for i, j in pairs], axis=1
        )

    equations = np.concatenate([products(a, a) - products(b, b), products(a, b)])
    size = (products(a, a) + products(b, b)).mean(axis=0) / 2
    system = np.concatenate([equations / np.sqrt(len(equations)), 10 * size[None]])
    q = np.linalg.lstsq(system, np.append(np.zeros(len(equations)), 10.0), rcond=None)[0]
    metric = np.zeros((3, 3))
    for (i, j), value in zip(pairs, q):
        metric[i, j] = metric[j, i] = value
    values, vectors = np.linalg.eigh(metric)
    root = vectors * np.sqrt(np.maximum(values, 1e-3 * values.max()))
    return _upright(np.linalg.solve(root, affine).T, mean, mirror)


def _upright(points: np.ndarray, mean: np.ndarray, mirror: np.ndarray) -> RigidModel:
    """Rotate a shape so that its frontal view is the mean shape, with the nose towards the viewer;
    make it symmetric, with the eyes one unit apart."""
    points = points - points.mean(axis=0)
    target = np.stack([mean.real, mean.imag], axis=1)
    camera = np.linalg.lstsq(points, target, rcond=None)[0].T
    left, _, right = np.linalg.svd(camera, full_matrices=False)
    rows = left @ right
    points = points @ np.vstack([rows, np.cross(rows[0], rows[1])]).T
    points = (points + points[mirror] * [-1, 1, 1]) / 2
    points = points / abs(points[0, 0] - points[1, 0])
    # the views do not determine the sign of the depth, but the nose does
    if points[2:4, 2].mean() > points[:2, 2].mean():
        points = points * [1, 1, -1]
    return RigidModel(points)


def is_same_instance(
    a: np.ndarray, b: np.ndarray, ied: float, radius: float = SAME_INSTANCE
) -> bool:
    """Return whether the keypoints of two faces coincide, given as complex numbers.

    ``ied`` is the reference length in image pixels.
    """
    return float(abs(a - b).mean()) < radius * ied


def is_inside(points: np.ndarray, ied: float, instance: np.ndarray, instance_length: float) -> bool:
    """Return whether a hypothesis has about the same position and size as a known face.

    Each is given by its keypoints, as complex numbers, and its reference length in pixels.
    """
    alike = instance_length / _ALIKE < ied < _ALIKE * instance_length
    return alike and float(abs(points - instance).mean()) < _INSIDE * instance_length
