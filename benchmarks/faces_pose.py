"""Accuracy of the pose: angles estimated from views of a model's rigid face with errors at every
point.

python benchmarks/faces_pose.py
"""

import numpy as np
from annealed.models import load_model
from annealed.models.keypoints.instances.shape_models import Pose, pose_of, rotation_of
from common import new_parser

LARGEST = np.radians([45, 25, 40])  # yaw, pitch, roll


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument("--model", default="faces")
    parser.add_argument(
        "--errors",
        type=float,
        nargs="+",
        default=[0.03, 0.06],
        help="standard deviations of the errors in x and in y, in IED",
    )
    parser.add_argument("--views", type=int, default=1000)
    args = parser.parse_args(argv)
    rigid = load_model(args.model).finder.rigid
    print(
        "| error of the points, IED | median of the largest angle's error, degrees | 95% "
        "|\n|---|---|---|"
    )
    for error in args.errors:
        rng = np.random.default_rng(0)
        poses = []
        for _ in range(args.views):
            pose = Pose(*rng.uniform(-LARGEST, LARGEST))
            noise = error * (
                rng.normal(size=len(rigid.points)) + 1j * rng.normal(size=len(rigid.points))
            )
            seen = 40.0 * (rigid.project(rotation_of(pose), 1.0, 0j) + noise)
            poses.append(np.abs(np.subtract(pose_of(rigid.fit(seen)[0]), pose)).max())
        middle, most = np.degrees(np.quantile(poses, [0.5, 0.95]))
        print(f"| {error:g} | {middle:.1f} | {most:.1f} |")


if __name__ == "__main__":
    main()
