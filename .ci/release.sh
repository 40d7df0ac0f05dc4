#!/usr/bin/env bash
# What `make release-check` does: docs/releasing.md. A line per combination goes to build/release/table.txt.
set -euo pipefail
cd "$(dirname "$0")/.."
PYTHONS=${PYTHONS:-$(for v in 3.11 3.12 3.13 3.14; do ! "python$v" -c '' 2> /dev/null || command -v "python$v"; done)}  # those that start
[ -n "$PYTHONS" ] || { echo "no Python found: name them, PYTHONS='python3.11 ...'"; exit 2; }
unset PYTHONPATH PYTHONHOME  # an environment holds what was installed into it, and nothing else
OUT=build/release
rm -rf dist $OUT && mkdir -p $OUT
: > $OUT/table.txt
set -- $PYTHONS
"$1" -m venv $OUT/build
$OUT/build/bin/pip install --quiet build twine uv cyclonedx-bom
UV=$OUT/build/bin/uv  # makes environments in seconds
mkdir $OUT/source && git archive HEAD | tar -x -C $OUT/source
"$1" .ci/readme.py $OUT/source
$OUT/build/bin/python -m build --quiet --outdir dist $OUT/source
$OUT/build/bin/python -m build --quiet --outdir dist $OUT/source/experiments
$OUT/build/bin/twine check --strict dist/*
WHEEL=$(realpath dist/annealed-*.whl) SDIST=$(realpath dist/annealed-*.tar.gz)
$OUT/build/bin/python .ci/contents.py "$WHEEL" "$SDIST"

# check NAME PYTHON PART PIP-ARGUMENTS...: create an empty environment, install, run the smoke test
check() {
  local name=$1 python=$2 part=$3; shift 3
  $UV venv --quiet --clear --python "$python" "$OUT/$name"
  $UV pip install --quiet --python "$OUT/$name/bin/python" "$@"
  [ "$part" != no-weights ] || rm "$OUT/$name"/lib/python*/site-packages/annealed/models/weights/*.safetensors
  local line
  line=$(cd / && "$OLDPWD/$OUT/$name/bin/python" -I "$OLDPWD/.ci/smoke.py" "$part")
  line+=" opencv $("$OUT/$name/bin/python" -c 'import cv2; print(cv2.__version__)' 2>/dev/null || echo none)"
  echo "$name: $line" | tee -a $OUT/table.txt
  case $name in *-wheel-vision)
    $OUT/build/bin/cyclonedx-py environment "$OUT/$name/bin/python" --output-reproducible -o "$OUT/$name.sbom.json" ;;
  esac
  rm -rf "${OUT:?}/$name"
}

for python in $PYTHONS; do
  v=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  check "$v-wheel-learners" "$python" learners "$WHEEL"
  check "$v-wheel-vision" "$python" vision "annealed[vision] @ file://$WHEEL"
  check "$v-sdist-learners" "$python" learners "$SDIST"
  case $v in
    3.11)
      "$python" .ci/oldest.py > $OUT/oldest.txt
      check "$v-wheel-oldest" "$python" vision --constraint $OUT/oldest.txt "annealed[vision] @ file://$WHEEL"
      check "$v-wheel-without-weights" "$python" no-weights "annealed[vision] @ file://$WHEEL" ;;
    3.12) check "$v-wheel-opencv4" "$python" vision "annealed[vision] @ file://$WHEEL" "opencv-python-headless<5" ;;
  esac
done

if [ -n "${FULL:-}" ]; then
  make test-oldest PYTHON="$1"
  for python in $PYTHONS; do make test-newest PYTHON="$python"; done
fi
