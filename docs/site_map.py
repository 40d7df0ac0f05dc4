"""The order of the pages on the site: each page with the pages below it, under a heading or without
one.

Names are paths from the root of the checkout without their suffix. :mod:`conf` turns this into
tables of contents; tests read it without sphinx.
"""

NAVIGATION: dict[str, dict[str | None, list[str]]] = {
    "docs/index": {
        None: [
            "docs/installation",
            "docs/tutorials/index",
            "docs/gallery/index",
            "docs/tables",
            "docs/learners",
            "docs/faces",
            "docs/reference",
            "docs/keypoints",
            "docs/motion",
            "docs/moving_camera",
            "docs/pets",
            "docs/sensors",
            "docs/scale",
            "docs/serve",
            "docs/integrations",
            "docs/first_minute",
            "docs/reliability",
            "docs/choosing",
            "experiments/pages/benchmarks",
            "docs/background",
            "docs/contributing",
        ]
    },
    "docs/tutorials/index": {
        None: [
            "docs/tutorials/table",
            "docs/tutorials/database",
            "docs/tutorials/why",
            "docs/tutorials/how_sure",
            "docs/tutorials/insurance",
            "docs/tutorials/score_card",
            "docs/tutorials/photographs",
            "docs/tutorials/video",
            "docs/tutorials/loss",
        ]
    },
    "docs/tables": {
        None: [
            "docs/data_frames",
            "docs/select_options",
            "docs/how_sure",
            "docs/score_cards",
            "docs/export",
            "experiments/pages/select_tables",
        ]
    },
    "docs/learners": {
        None: [
            "docs/responses",
            "docs/invariance",
            "docs/constraints",
            "docs/losses",
            "docs/ranking",
            "docs/online",
            "docs/metric",
            "docs/kernels",
        ]
    },
    "docs/scale": {None: ["docs/cluster"]},
    "docs/faces": {None: ["docs/faces_results", "docs/faces_train", "docs/faces_method"]},
    "experiments/pages/benchmarks": {
        None: [
            "experiments/pages/selector_tables",
            "experiments/pages/selector_tables_clean",
            "experiments/pages/selector_tables_noisy",
            "experiments/pages/selector_tables_regression",
            "experiments/pages/motion_results",
            "experiments/pages/sensors_results",
            "experiments/pages/figures",
        ]
    },
    "docs/reference": {
        None: [
            "docs/api",
            "docs/commands",
            "docs/glossary",
            "docs/datasets",
            "SECURITY",
            "CHANGELOG",
        ],
        "Model cards": ["models/weights/faces", "models/weights/motion", "models/weights/pets"],
    },
    "docs/background": {
        "Papers": ["docs/papers", "docs/references"],
        "Experiments": ["experiments/README", "experiments/notebook/index"],
    },
    "experiments/notebook/index": {
        None: [
            "experiments/notebook/selectors",
            "experiments/notebook/minimax",
            "experiments/notebook/tables",
            "experiments/notebook/words",
            "experiments/notebook/scale",
            "experiments/notebook/metric",
            "experiments/notebook/online",
            "experiments/notebook/faces",
            "experiments/notebook/faces_training",
            "experiments/notebook/keypoints",
            "experiments/notebook/paper_faces",
            "experiments/notebook/motion",
            "experiments/notebook/pets",
        ]
    },
    "docs/contributing": {
        None: ["docs/architecture", "docs/checklists", "docs/releasing", "CODE_OF_CONDUCT"]
    },
}

# Titles that are shorter in the navigation than on the page.
SHORT = {
    "docs/tables": "Tables",
    "docs/learners": "Selectors",
    "docs/faces": "Faces",
    "docs/choosing": "Choosing a selector",
    "experiments/pages/benchmarks": "Benchmarks",
    "docs/background": "Papers",
}
