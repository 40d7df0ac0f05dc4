"""Motion segmentation of rendered videos with known ground truth: a hand-held camera indoors, and a
camera that drives along a street or an avenue (examples/rendered_videos.py), tracked by our
tracker.

    OMP_NUM_THREADS=1 python benchmarks/motion_videos.py [--kinds indoors driving avenue]
        [--seeds 5 6 7 8] [--model FILE] [--overlays FOLDER] [--summary]

The test seeds are 5 to 8; smaller seeds were used in development. The avenue was not used in
development.

A track belongs to the body that it shows in most of its frames. Prints the percentage of wrong
tracks, with the number of motions given and chosen, and the share of the tracks on moving bodies;
with --summary, the means of each layout, and the chosen numbers with their probabilities.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from annealed.models import load_model
from annealed.pipelines.common.video import write_video
from annealed.pipelines.motion.segment import segment_file
from annealed.vision import Tracker, misclassification
from common import new_parser, print_head, print_line

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
from rendered_videos import SCENES, SIZE, render


def truth_of(tracks, labels):
    """Return the body (P,) that each track shows in most of its frames."""
    n_bodies, votes = labels.max() + 1, []
    for path in tracks.transpose(1, 0, 2):
        frames = np.flatnonzero(np.isfinite(path[:, 0]))
        x, y = np.round(path[frames]).astype(int).T
        votes.append(
            np.bincount(
                labels[frames, y.clip(0, SIZE[1] - 1), x.clip(0, SIZE[0] - 1)], minlength=n_bodies
            )
        )
    return np.argmax(votes, axis=1)


def rendered_tracks(kind, seed):
    """Return the tracks of a rendered video, and the body that each shows."""
    frames, labels = render(kind, seed)
    with tempfile.TemporaryDirectory() as folder:
        video = Path(folder) / "scene.avi"
        write_video(video, frames, 25.0)
        tracks = Tracker().track(video)
    return tracks, truth_of(tracks, labels)


def main(argv=None):
    """Print a row for each video, and the means."""
    parser = new_parser(__doc__)
    parser.add_argument("--kinds", nargs="+", choices=SCENES, default=list(SCENES))
    parser.add_argument("--seeds", nargs="+", type=int, default=[5, 6, 7, 8])
    parser.add_argument("--model", default="motion")
    parser.add_argument("--overlays", type=Path)
    parser.add_argument("--summary", action="store_true")
    args = parser.parse_args(argv)
    ranker, rows = load_model(args.model), []
    wrong = ("wrong, %", "best candidate, %", "wrong with chosen number, %")
    head = ("video", "tracks", "on bodies, %", "motions", "chosen", "probability", *wrong)
    if not args.summary:
        print_head(*head)
    with tempfile.TemporaryDirectory() as folder:
        for kind in args.kinds:
            for seed in args.seeds:
                frames, labels = render(kind, seed)
                video = Path(folder) / f"{kind}{seed}.avi"
                write_video(video, frames, 25.0)
                overlay = None if args.overlays is None else args.overlays / f"{kind}{seed}.avi"
                free = segment_file(ranker, video, None)
                truth = truth_of(free.tracks, labels)
                kept = free.labels >= 0
                present = np.unique(truth[kept], return_inverse=True)[1]
                known = segment_file(ranker, video, int(present.max()) + 1, overlay=overlay)
                listed = [known.labels[kept], free.labels[kept]]
                listed += [candidate.labels for candidate in known.segmentation.candidates]
                given, chosen, *errors = (100 * misclassification(present, one) for one in listed)
                number, probability = next(iter(free.segmentation.probabilities.items()))
                answer = f"{number} ({probability:.2f})"
                rows.append((kind, given, min(errors), chosen, present.max() + 1, answer))
                shares = kept.sum(), f"{100 * (present > 0).mean():.0f}", present.max() + 1
                if not args.summary:
                    shown = (f"{one:.1f}" for one in rows[-1][1:4])
                    print_line(f"{kind} {seed}", *shares, number, f"{probability:.2f}", *shown)
    if args.summary:
        print_head("layout", *wrong, "motions", "chosen")
    for kind in args.kinds:
        *errors, true, answers = zip(*(row[1:] for row in rows if row[0] == kind))
        shown = (f"{np.mean(one):.1f}" for one in errors)
        if args.summary:
            print_line(kind, *shown, *(", ".join(map(str, one)) for one in (true, answers)))
        else:
            print_line(f"{kind}, mean", *[""] * 5, *shown)


if __name__ == "__main__":
    main()
