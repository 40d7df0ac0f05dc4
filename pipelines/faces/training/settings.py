"""Settings of a training, and the files that they are read from."""

from __future__ import annotations

import json
import math
import tomllib
from dataclasses import asdict, dataclass
from pathlib import Path

from .fitting import FitSettings


@dataclass(frozen=True)
class TrainingSettings(FitSettings):
    """Everything that decides what comes out of a training, apart from the data. Distances are in IED unless said otherwise.

    Parameters
    ----------
    rounds : int
        Largest number of rounds of hard-negative mining; the fit after the last one is final.
    n_random : int
        Random negatives of the first fit.
    per_round, per_view : int
        Largest number of new false alarms of one round, and of one view.
    views_per_round : int
        Views (photographs and mirror images) scanned in one round.
    lowered : float
        How far the rejection thresholds are lowered for mining, in units of the score.
    ied_low, ied_high : float
        Range of the IED in pixels of a pyramid level on which windows are positives; it defines `reference_ied`.
    positive_radius : float
        Largest distance of a positive window's pixel from the keypoint, in pixels of the level.
    negative_distance : float
        Least distance of a negative window from that keypoint of any face.
    negative_pixels : float
        Least distance of a negative window from it in pixels of the window's level; both hold.
    held_out : float
        Share of the photographs that is not fitted but calibrates thresholds and offsets.
    reject : float
        Share of the held-out positive windows that one rejection threshold may lose, before ``reject_margin``.
    reject_margin : float
        How far the rejection thresholds lie below that quantile, in units of the score.
    precision : float
        Precision of the default threshold on the held-out photographs.
    seed : int
        Seed of all random choices.

    Other parameters are those of `FitSettings`.
    """

    rounds: int = 7
    n_random: int = 20_000
    per_round: int = 14_000
    per_view: int = 100
    views_per_round: int = 400
    lowered: float = 0.7
    ied_low: float = 20.0
    ied_high: float = 40.0
    positive_radius: float = 1.0
    negative_distance: float = 0.5
    negative_pixels: float = 0.0
    held_out: float = 0.1
    reject: float = 0.02
    reject_margin: float = 0.0
    precision: float = 0.9
    seed: int = 0

    @property
    def reference_ied(self) -> float:
        """Reference IED of the detector in pixels of a level: the geometric mean of the range, to a tenth of a pixel."""
        return round(math.sqrt(self.ied_low * self.ied_high), 1)


def read_settings(path: Path | None) -> TrainingSettings:
    """Read training settings from a TOML or JSON file (None: all defaults); entries that it does not name keep their defaults."""
    if path is None:
        return TrainingSettings()
    try:
        raw = path.read_text(encoding="utf-8")
        entries = json.loads(raw) if path.suffix.lower() == ".json" else tomllib.loads(raw)
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: not a readable TOML or JSON file ({error})") from None
    if not isinstance(entries, dict):
        raise ValueError(f"{path}: expected settings by name")
    known: dict[str, type] = {name: type(value) for name, value in asdict(TrainingSettings()).items()}
    for name, value in entries.items():
        if name not in known:
            raise ValueError(f"{path}: setting {name!r} is unknown; expected some of {', '.join(known)}")
        accepted = (int, float) if known[name] is float else (known[name],)
        if isinstance(value, bool) or not isinstance(value, accepted):
            raise ValueError(f"{path}: {name}={value!r}, expected a {known[name].__name__}")
    return TrainingSettings(**{name: known[name](value) for name, value in entries.items()})
