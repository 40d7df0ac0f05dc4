"""Render synthetic images of objects such as mugs and screws with known points, as a COCO keypoint
file.

    python examples/rendered_objects.py mug pictures/train 120
    python examples/rendered_objects.py mug pictures/test 60 --test  # other seeds and textures
    annealed keypoints train --data pictures/train --out mug.safetensors
    annealed keypoints evaluate --data pictures/test --model mug.safetensors

A mug is a mesh of a cylinder and a curved tube; a screw is a mesh of a head, a threaded shank and a
tip; a gear is a toothed disc with a hole and a keyway. They are rendered from varying directions in
varying light. A dial is a disc with a scale and a needle; a chair and a trestle are frames of thin
rods; a sign is a plane with a print; pliers have two parts that turn about a pivot. Three kinds of
background are used for training, three others for testing, or halves of the photographs in the
folder --photographs. OUT/background has a third as many images without an object.
"""

import argparse
import json
from pathlib import Path

import cv2
import numpy as np

SIZE = (240, 180)
PHOTOGRAPHS: dict[bool, list[Path]] = {}  # of backgrounds, by whether they are for testing
POINTS = {
    "mug": ["rim_handle", "rim_far", "base_far", "base_handle", "handle_middle"],
    "screw": ["head_left", "head_right", "head_top", "neck", "shank_end", "tip"],
    "gear": ["centre", "keyway", "rim_up", "rim_left", "rim_down", "rim_right"],
    "dial": ["pivot", "tip", "first_mark", "last_mark"],
    "chair": [
        *("seat_front_left", "seat_front_right", "seat_rear_right", "seat_rear_left"),
        *("foot_front_left", "foot_front_right", "foot_rear_right", "foot_rear_left"),
        *("top_right", "top_left"),
    ],
    "trestle": [
        *("beam_left", "beam_right"),
        *("foot_front_left", "foot_front_right", "foot_rear_right", "foot_rear_left"),
        *("brace_front_left", "brace_front_right", "brace_rear_right", "brace_rear_left"),
    ],
    "sign": ["north_west", "north_east", "south_east", "south_west", "ring", "bar", "peak"],
    "pliers": ["tip_left", "tip_right", "pivot", "grip_left", "grip_right"],
}
SKELETONS = {
    "mug": [[1, 2], [2, 3], [3, 4], [4, 5], [5, 1]],
    "screw": [[1, 3], [3, 2], [1, 2], [3, 4], [4, 5], [5, 6]],
    "gear": [[1, 2], [3, 4], [4, 5], [5, 6], [6, 3]],
    "dial": [[1, 2], [1, 3], [1, 4]],
    "chair": [
        *([1, 2], [2, 3], [3, 4], [4, 1], [1, 5], [2, 6], [3, 7], [4, 8], [3, 9], [4, 10], [9, 10])
    ],
    "trestle": [
        *([1, 2], [1, 7], [7, 3], [1, 10], [10, 6], [2, 8], [8, 4], [2, 9], [9, 5]),
        *([7, 10], [8, 9]),
    ],
    "sign": [[1, 2], [2, 3], [3, 4], [4, 1], [5, 6], [6, 7]],
    "pliers": [[1, 3], [2, 3], [3, 4], [3, 5]],
}


def clouds(rng, xy):
    """Return smooth noise at a random scale."""
    coarse = rng.uniform(0, 1, (rng.integers(3, 12), rng.integers(3, 14), 1))
    return cv2.resize(coarse, SIZE, interpolation=cv2.INTER_CUBIC)[..., None]


def stripes(rng, xy):
    """Return waves in one direction."""
    return 0.5 + 0.5 * np.sin(xy @ rng.normal(0, 0.2, 2) + rng.uniform(0, 6))[..., None]


def blobs(rng, xy):
    """Discs."""
    picture = np.zeros((*SIZE[::-1], 1))
    for _ in range(25):
        place = (int(rng.integers(0, SIZE[0])), int(rng.integers(0, SIZE[1])))
        cv2.circle(
            picture, place, int(rng.integers(4, 30)), float(rng.uniform(0, 1)), -1, cv2.LINE_AA
        )
    return picture


def polygons(rng, xy):
    """Return random quadrangles."""
    picture = np.full((*SIZE[::-1], 1), 0.5)
    for _ in range(20):
        corners = rng.uniform(0, SIZE, 2) + rng.normal(0, 35, (4, 2))
        cv2.fillPoly(picture, [corners.astype(np.int32)], float(rng.uniform(0, 1)))
    return picture


def checks(rng, xy):
    """Return a chequered cloth."""
    turned = xy @ np.linalg.qr(rng.normal(size=(2, 2)))[0] / rng.uniform(8, 30)
    return (np.floor(turned).sum(axis=-1) % 2)[..., None] * rng.uniform(0.3, 0.9)


def scratches(rng, xy):
    """Return lines on a gradient."""
    picture = np.ascontiguousarray((xy @ rng.normal(0, 1 / 300, 2))[..., None] % 1)
    for a, b in rng.uniform(0, SIZE, (25, 2, 2)).astype(int).tolist():
        cv2.line(picture, a, b, float(rng.uniform(0, 1)), int(rng.integers(1, 4)), cv2.LINE_AA)
    return picture


TEXTURES = {False: (clouds, stripes, blobs), True: (polygons, checks, scratches)}


def background(rng, test):
    """Return a coloured texture or a part of a photograph, (H, W, 3), values from 0 to 255."""
    if PHOTOGRAPHS:
        return photograph(rng, PHOTOGRAPHS[test])
    xy = np.stack(np.meshgrid(np.arange(SIZE[0]), np.arange(SIZE[1])), axis=-1).astype(float)
    a, b = rng.uniform(20, 235, (2, 3))
    share = TEXTURES[test][rng.integers(3)](rng, xy)
    return np.ascontiguousarray(
        a + (b - a) * share + rng.normal(0, rng.uniform(1, 8), (*SIZE[::-1], 3))
    )


def photograph(rng, paths):
    """Return a random part of a random photograph, which may be reflected."""
    whole = cv2.imread(str(paths[rng.integers(len(paths))]))
    largest = min(whole.shape[1] / SIZE[0], whole.shape[0] / SIZE[1])
    sides = (np.array(SIZE) * largest * rng.uniform(0.5, 1)).astype(int)
    x, y = (rng.uniform(0, 1, 2) * (np.array(whole.shape[1::-1]) - sides)).astype(int)
    part = cv2.resize(whole[y : y + sides[1], x : x + sides[0]], SIZE, interpolation=cv2.INTER_AREA)
    return np.ascontiguousarray(part[:, :: rng.choice([-1, 1])], dtype=float)


def sheet(surface, n_u, n_v):
    """Return quadrangles (n, 4, 3) of a surface with two parameters from 0 to 1."""
    u, v = np.meshgrid(np.linspace(0, 1, n_u), np.linspace(0, 1, n_v), indexing="ij")
    grid = np.stack(surface(u, v), axis=-1)
    return np.stack([grid[:-1, :-1], grid[1:, :-1], grid[1:, 1:], grid[:-1, 1:]], axis=2).reshape(
        -1, 4, 3
    )


def mug_mesh(height, handle, thick):
    """Return quadrangles of a mug of radius 1, y down, and its points; the handle lies at +x."""
    wall = sheet(
        lambda u, v: (np.cos(2 * np.pi * u), height * (2 * v - 1), np.sin(2 * np.pi * u)), 40, 6
    )
    base = sheet(
        lambda u, v: (v * np.cos(2 * np.pi * u), height + 0 * u, v * np.sin(2 * np.pi * u)), 40, 3
    )

    def tube(u, v):
        bend, around = np.pi * (u - 0.5), 2 * np.pi * v
        x = 0.95 + (handle + thick * np.cos(around)) * np.cos(bend)
        return x, (0.55 * height + thick * np.cos(around)) * np.sin(bend), thick * np.sin(around)

    points = [
        [1, -height, 0],
        [-1, -height, 0],
        [-1, height, 0],
        [1, height, 0],
        [0.95 + handle + thick, 0, 0],
    ]
    return np.concatenate([wall, base, sheet(tube, 14, 9)]), np.array(points, float)


def draw_mug(picture, rng, centre, size):
    """Draw a mug into an image; return its points (5, 2)."""
    quads, points = mug_mesh(rng.uniform(0.9, 1.3), rng.uniform(0.45, 0.7), rng.uniform(0.1, 0.17))
    turn = turning(rng.uniform(-0.6, 0.6), rng.uniform(0.15, 0.6), rng.normal(0, 0.12))
    draw_mesh(picture, rng, quads @ turn.T, centre, size / 3)
    return centre + size / 3 * (points @ turn.T)[:, :2]


def screw_mesh(length, thick, head):
    """Return quadrangles of a screw with a head of radius 1, y down, and the points on its axis."""
    ends = np.array([-length, head - length, length - 0.5, length])
    side = sheet(
        lambda u, v: (np.cos(2 * np.pi * u), ends[0] + head * v, np.sin(2 * np.pi * u)), 30, 3
    )
    caps = [
        sheet(lambda u, v: (v * np.cos(2 * np.pi * u), y + 0 * u, v * np.sin(2 * np.pi * u)), 30, 3)  # noqa: B023
        for y in ends[:2]
    ]

    def shank(u, v):
        radius = thick * (1 + 0.22 * np.sin(2 * np.pi * (u + 7 * v)))
        return (
            radius * np.cos(2 * np.pi * u),
            ends[1] + (ends[2] - ends[1]) * v,
            radius * np.sin(2 * np.pi * u),
        )

    def tip(u, v):
        radius = thick * (1 - v)
        return (
            radius * np.cos(2 * np.pi * u),
            ends[2] + (ends[3] - ends[2]) * v,
            radius * np.sin(2 * np.pi * u),
        )

    return np.concatenate([side, *caps, sheet(shank, 16, 60), sheet(tip, 16, 4)]), np.outer(
        ends, [0, 1.0, 0]
    )


def draw_screw(picture, rng, centre, size):
    """Draw a screw into an image; return its points (6, 2)."""
    quads, axis = screw_mesh(rng.uniform(1.6, 2.3), rng.uniform(0.35, 0.5), rng.uniform(0.4, 0.7))
    turn, scale = turning(rng.uniform(-3, 3), rng.uniform(-0.5, 0.5), rng.normal(0, 0.15)), size / 4
    draw_mesh(picture, rng, quads @ turn.T, centre, scale)
    axis = centre + scale * (axis @ turn.T)[:, :2]
    axial = axis[3] - axis[0]
    across = scale * np.array([-axial[1], axial[0]]) / np.hypot(*axial)
    middle = axis[:2].mean(axis=0)
    return np.array([middle + across, middle - across, *axis])


def draw_gear(picture, rng, centre, size):
    """Draw a gear into an image; return its points (6, 2)."""
    n_teeth, depth, hole, thick = (
        rng.integers(9, 17),
        rng.uniform(0.12, 0.2),
        rng.uniform(0.22, 0.34),
        rng.uniform(0.15, 0.35),
    )

    def around(u, radius, z):
        return radius * np.cos(2 * np.pi * u), radius * np.sin(2 * np.pi * u), z + 0 * u

    def outer(u):
        return 1 - depth * (np.sin(2 * np.pi * n_teeth * u) > 0)

    n = 8 * n_teeth + 1
    face = sheet(lambda u, v: around(u, hole + v * (outer(u) - hole), -thick), n, 4)
    rim = sheet(lambda u, v: around(u, outer(u), thick * (2 * v - 1)), n, 3)
    bore = sheet(lambda u, v: around(u, hole + 0 * v, thick * (2 * v - 1)), 40, 3)
    back = sheet(lambda u, v: around(u, hole * v, thick), 40, 2)
    key = np.array(
        [
            [-0.1, -hole - 0.16, -thick],
            [0.1, -hole - 0.16, -thick],
            [0.1, 0.05 - hole, -thick],
            [-0.1, 0.05 - hole, -thick],
        ]
    )
    turn, scale = (
        turning(rng.uniform(-0.6, 0.6), rng.uniform(-0.5, 0.5), rng.normal(0, 0.1)),
        size / 2.2,
    )
    draw_mesh(picture, rng, np.concatenate([face, rim, bore, back]) @ turn.T, centre, scale)
    draw_mesh(picture, rng, key[None] @ turn.T, centre, scale)
    points = [
        [0, 0, -thick],
        [0, -hole - 0.16, -thick],
        [0, -1, -thick],
        [-1, 0, -thick],
        [0, 1, -thick],
        [1, 0, -thick],
    ]
    return centre + scale * (np.array(points) @ turn.T)[:, :2]


def turning(yaw, pitch, roll):
    """Return the rotation matrix (3, 3) of a view."""
    (sy, sp, sr), (cy, cp, cr) = np.sin([yaw, pitch, roll]), np.cos([yaw, pitch, roll])
    return (
        np.array([[cr, -sr, 0], [sr, cr, 0], [0, 0, 1]])
        @ [[1, 0, 0], [0, cp, -sp], [0, sp, cp]]
        @ [[cy, 0, -sy], [0, 1, 0], [sy, 0, cy]]
    )


def draw_mesh(picture, rng, quads, centre, scale):
    """Draw quadrangles (n, 4, 3) into an image, from back to front, in random light and colour."""
    normal = np.cross(quads[:, 1] - quads[:, 0], quads[:, 3] - quads[:, 0])
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-9)
    light = rng.normal(size=3) + [0, -1, -1.5]
    shade = 0.35 + 0.65 * np.abs(normal @ light) / np.linalg.norm(light)
    colour = rng.uniform(60, 255, 3)
    for k in np.argsort(-quads[:, :, 2].mean(axis=1)):
        corners = np.round(16 * (centre + scale * quads[k, :, :2])).astype(np.int32)
        cv2.fillConvexPoly(picture, corners, (colour * shade[k]).tolist(), cv2.LINE_AA, 4)


def draw_dial(picture, rng, centre, size):
    """Draw a dial into an image; return its points (4, 2)."""
    radius, roll, squeeze = size / 2, rng.normal(0, 0.12), rng.uniform(0.8, 1)
    look = np.array([[np.cos(roll), -np.sin(roll)], [np.sin(roll), np.cos(roll)]]) @ np.diag(
        [squeeze, 1]
    )
    face, ink = rng.uniform(150, 255, 3), rng.uniform(0, 80, 3)
    place = lambda angle, r: centre + radius * r * (look @ [np.sin(angle), -np.cos(angle)])  # noqa: E731
    fixed = lambda points: np.round(16 * np.array(points)).astype(np.int32)  # noqa: E731
    for r, paint in ((1.0, ink), (0.93, face)):
        cv2.fillPoly(
            picture,
            [fixed([place(a, r) for a in np.linspace(0, 2 * np.pi, 60)])],
            paint.tolist(),
            cv2.LINE_AA,
            4,
        )
    marks = np.linspace(-2.1, 2.1, rng.integers(7, 14))
    for k, a in enumerate(marks):
        ends = fixed([place(a, 0.66 if k in (0, len(marks) - 1) else 0.76), place(a, 0.86)])
        cv2.line(
            picture,
            ends[0].tolist(),
            ends[1].tolist(),
            ink.tolist(),
            3 if k in (0, len(marks) - 1) else 1,
            cv2.LINE_AA,
            4,
        )
    angle, hand = rng.uniform(-2.0, 2.0), rng.permutation(3) * [110, 60, 60] + rng.uniform(0, 30, 3)
    needle = [
        place(angle, 0.62),
        place(angle + 1.6, 0.06),
        place(angle + 3.14, 0.15),
        place(angle - 1.6, 0.06),
    ]
    cv2.fillPoly(picture, [fixed(needle)], hand.tolist(), cv2.LINE_AA, 4)
    cv2.circle(
        picture, fixed(centre).tolist(), int(16 * radius * 0.09), ink.tolist(), -1, cv2.LINE_AA, 4
    )
    return np.array([centre, place(angle, 0.62), place(-2.1, 0.76), place(2.1, 0.76)])


def draw_rods(picture, xy, bones, colour, thick):
    """Draw thin rods between points (n, 2), numbered from 1."""
    for a, b in bones:
        ends = np.round(16 * xy[[a - 1, b - 1]]).astype(np.int32).tolist()
        cv2.line(picture, *ends, colour, thick, cv2.LINE_AA, 4)


def draw_chair(picture, rng, centre, size):
    """Draw a chair of rods into an image; return its points (10, 2)."""
    wide, deep, high, back = rng.uniform([0.4, 0.4, 0.45, 0.5], [0.55, 0.55, 0.6, 0.75])
    seat = np.array([[-wide, 0, -deep], [wide, 0, -deep], [wide, 0, deep], [-wide, 0, deep]])
    points = np.concatenate([seat, seat + [0, high, 0], seat[2:] - [0, back, -0.1]])
    turn = turning(rng.uniform(0.15, 0.7), rng.uniform(0.1, 0.5), rng.normal(0, 0.08))
    xy = centre + size / 1.6 * (points @ turn.T)[:, :2]
    colour, thick = rng.uniform(0, 255, 3).tolist(), int(rng.integers(1, 4))
    draw_rods(picture, xy, SKELETONS["chair"], colour, thick)
    return xy


def draw_trestle(picture, rng, centre, size):
    """Draw a trestle of rods into an image; return its points (10, 2)."""
    wide, deep, high, inset = rng.uniform([0.6, 0.3, 0.35, 0.1], [0.8, 0.45, 0.5, 0.2])
    beam = np.array([[-wide, -high, 0], [wide, -high, 0]])
    feet = np.array(
        [[-wide, high, -deep], [wide, high, -deep], [wide, high, deep], [-wide, high, deep]]
    )
    tops, share = beam[[0, 1, 1, 0]], rng.uniform(0.5, 0.7)
    tops = tops * [1 - inset, 1, 1]
    points = np.concatenate([beam, feet, tops + share * (feet - tops)])
    turn = turning(rng.uniform(0.15, 0.7), rng.uniform(0.1, 0.5), rng.normal(0, 0.08))
    xy, ends = (
        centre + size / 1.8 * (some @ turn.T)[:, :2] for some in (points, beam * [1 - inset, 1, 1])
    )
    # the legs meet the beam inside its ends
    bones = [[a + 10 if a < 3 and b > 2 else a, b] for a, b in SKELETONS["trestle"]]
    colour, thick = rng.uniform(0, 255, 3).tolist(), round(2 + size * rng.uniform(0, 0.02))
    draw_rods(picture, np.concatenate([xy, ends]), bones, colour, thick)
    return xy


def draw_sign(picture, rng, centre, size):
    """Draw a plane with a print in perspective into an image; return its points (7, 2)."""
    side = 128
    plate, ink = np.full((side, side, 3), rng.uniform(170, 255, 3)), rng.uniform(0, 90, 3)
    cv2.rectangle(plate, (4, 4), (side - 5, side - 5), ink.tolist(), 3)
    cv2.circle(plate, (40, 40), 18, ink.tolist(), 6, cv2.LINE_AA)
    cv2.rectangle(plate, (70, 30), (112, 44), ink.tolist(), -1)
    cv2.fillPoly(plate, [np.array([[30, 108], [64, 66], [98, 108]])], ink.tolist(), cv2.LINE_AA)
    marked = np.array(
        [[0, 0], [side - 1, 0], [side - 1, side - 1], [0, side - 1], [40, 40], [91, 37], [64, 66]],
        float,
    )
    turn = turning(rng.uniform(-0.6, 0.6), rng.uniform(-0.5, 0.5), rng.normal(0, 0.12))
    plane = np.column_stack([marked / (side - 1) - 0.5, np.zeros(len(marked))]) @ turn.T
    xy = centre + size * plane[:, :2] / (1 + 0.35 * plane[:, 2:])
    matrix = cv2.getPerspectiveTransform(*(some[:4].astype(np.float32) for some in (marked, xy)))
    flags = cv2.INTER_AREA if size < side else cv2.INTER_LINEAR
    printed, share = (
        cv2.warpPerspective(image, matrix, SIZE, flags=flags)
        for image in (plate * rng.uniform(0.5, 1), np.ones((side, side, 1)))
    )
    picture[:] = np.where(share[..., None] > 0.5, printed, picture)
    return cv2.perspectiveTransform(marked[None], matrix)[0]


def draw_pliers(picture, rng, centre, size):
    """Draw pliers that are open by a random angle into an image; return their points (5, 2)."""
    jaw, arm, opened, roll = rng.uniform([0.3, 0.55, 0.12, -0.35], [0.4, 0.65, 0.45, 0.35])
    colours, points = rng.uniform(40, 230, (2, 3)), []
    for sign in (-1, 1):
        turn = roll + sign * opened
        axes = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
        outline = np.array(
            [[0, -jaw], [0.08 * sign, -0.5 * jaw], [0.09 * sign, 0], [-0.16 * sign, 0.4 * arm]]
        )
        grip = np.array([[-0.1 * sign, arm], [-0.02 * sign, arm], [-0.04 * sign, 0.4 * arm]])
        place = lambda some: centre + size * (some @ axes.T)  # noqa: B023, E731
        steel = np.concatenate([outline, [[-0.04 * sign, 0.4 * arm], [-0.07 * sign, 0]]])
        for polygon, colour in ((steel, colours[0]), ([outline[3], *grip], colours[1])):
            corners = np.round(16 * place(np.array(polygon))).astype(np.int32)
            cv2.fillPoly(picture, [corners], colour.tolist(), cv2.LINE_AA, 4)
        points += [*place(np.array([[0, -jaw], [-0.06 * sign, arm]]))]
    middle = np.round(16 * centre).astype(int).tolist()
    cv2.circle(
        picture, middle, int(16 * size * 0.06), (colours[0] / 2).tolist(), -1, cv2.LINE_AA, 4
    )
    # the parts cross: the left jaw belongs to the right grip
    return np.array([*points[::2], centre, *points[:0:-2]])


def cover(picture, rng, points, test):
    """Cover a part of an object with points (n, 2) with a rectangle of another texture; return
    which points are visible."""
    low, side = points.min(axis=0), np.ptp(points, axis=0)
    corner = low + rng.uniform(-0.2, 0.7, 2) * side
    left, top = corner.astype(int).clip(0)
    right, bottom = (corner + rng.uniform(0.3, 0.6, 2) * side).astype(int).clip(1)
    picture[top:bottom, left:right] = background(rng, test)[top:bottom, left:right]
    return ((points < [left, top]) | (points >= [right, bottom])).any(axis=1)


def draw_inside(kind, picture, rng, centre, size):
    """Draw an object in varying poses until all of its points are inside the image; return the
    image and the points (n_points, 2)."""
    while True:
        drawn = picture.copy()
        points = globals()[f"draw_{kind}"](drawn, rng, centre, size)
        if ((points >= -0.5) & (points <= np.array(SIZE) - 0.5)).all():
            return drawn, points


def render(kind, rng, test, covered=0.0, sizes=(60, 105)):
    """Return an image (H, W, 3), uint8, of one or two objects, their points (n, n_points, 2), and
    which points are visible (n, n_points)."""
    picture, annotations, visible = background(rng, test), [], []
    for k in range(1 + (rng.random() < 0.2)):
        size = rng.uniform(*sizes)
        centre = (
            np.array([rng.uniform(0.25, 0.35) + 0.4 * k if k or rng.random() < 0.5 else 0.6, 0.5])
            * SIZE
        )
        centre = (centre + rng.uniform(-20, 20, 2)).clip(
            size / 2 + 8, np.array(SIZE) - size / 2 - 8
        )
        if not annotations or np.hypot(*(annotations[0].mean(axis=0) - centre)) > max(115, size):
            picture, points = draw_inside(kind, picture, rng, centre, size)
            annotations.append(points)
            visible.append(np.ones(len(annotations[-1]), bool))
            if covered and rng.random() < covered:
                visible[-1] = cover(picture, rng, annotations[-1], test)
    return finish(picture, rng), np.array(annotations), np.array(visible)


def finish(picture, rng):
    """Apply the effects of a camera: blur, noise, exposure."""
    picture = cv2.GaussianBlur(picture, (0, 0), rng.uniform(0.4, 1.1)) * rng.uniform(
        0.7, 1.15
    ) + rng.normal(0, 3, picture.shape)
    return picture.clip(0, 255).astype(np.uint8)


def main() -> None:
    """Write the images and annotations.json."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=list(POINTS))
    parser.add_argument("out", type=Path)
    parser.add_argument("number", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--test", action="store_true", help="use seeds and textures other than those of training"
    )
    parser.add_argument(
        "--covered", type=float, default=0.0, help="share of partly covered objects"
    )
    parser.add_argument("--image-size", type=int, nargs=2, default=SIZE)
    parser.add_argument(
        "--sizes", type=float, nargs=2, default=(60, 105), help="smallest and largest object"
    )
    parser.add_argument("--photographs", type=Path, help="folder of photographs for backgrounds")
    args = parser.parse_args()
    globals()["SIZE"] = tuple(args.image_size)
    if args.photographs is not None:
        paths = sorted(args.photographs.iterdir())
        PHOTOGRAPHS.update({False: paths[::2], True: paths[1::2]})
    (args.out / "background").mkdir(parents=True, exist_ok=True)
    images, annotations = [], []
    for i in range(args.number):
        picture, drawn, visible = render(
            args.kind,
            np.random.default_rng([args.seed, args.test, i]),
            args.test,
            args.covered,
            args.sizes,
        )
        images.append(
            {"id": i, "file_name": f"{args.kind}{i:04}.png", "width": SIZE[0], "height": SIZE[1]}
        )
        cv2.imwrite(str(args.out / images[-1]["file_name"]), picture)
        for points, seen in zip(drawn, visible, strict=True):
            low, high = points.min(axis=0) - 3, points.max(axis=0) + 3
            keypoints = np.column_stack([points, 1.0 + seen]).round(2).ravel().tolist()
            box = np.append(low, high - low).round(2).tolist()
            annotations.append(
                {
                    "id": len(annotations),
                    "image_id": i,
                    "category_id": 1,
                    "keypoints": keypoints,
                    "bbox": box,
                }
            )
    for i in range(args.number // 3):
        rng = np.random.default_rng([args.seed, args.test, 1_000_000 + i])
        cv2.imwrite(
            str(args.out / "background" / f"{i:04}.png"), finish(background(rng, args.test), rng)
        )
    category = {
        "id": 1,
        "name": args.kind,
        "keypoints": POINTS[args.kind],
        "skeleton": SKELETONS[args.kind],
    }
    coco = {"images": images, "annotations": annotations, "categories": [category]}
    (args.out / "annotations.json").write_text(json.dumps(coco), encoding="utf-8")
    print(f"{args.out}: {args.number} pictures with {len(annotations)} objects")


if __name__ == "__main__":
    main()
