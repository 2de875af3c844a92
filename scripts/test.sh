#!/usr/bin/env bash
# Everything that needs no system service. `make test` prepares the Python environment first.
set -euo pipefail
cd "$(dirname "$0")/.."
# What the person who starts the tests has set, and where temporary folders are, changes what Trackway answers: settings, the rank of a job, the
# repository that a folder is in.
while IFS= read -r name; do
  case $name in
    TRACKWAY_TEST_* | TRACKWAY_SHARED) ;;
    TRACKWAY_* | RANK | LOCAL_RANK | GROUP_RANK | WORLD_SIZE | LOCAL_WORLD_SIZE | SLURM_* | VIRTUAL_ENV | CUDA_VISIBLE_DEVICES) unset "$name" ;;
  esac
done < <(compgen -e)
is_in_repository() { git -C "$1" rev-parse --git-dir >/dev/null 2>&1; }
for folder in "${TMPDIR:-/tmp}" /tmp /var/tmp; do
  if ! is_in_repository "$folder"; then export TMPDIR=$folder; break; fi
done
export TRACKWAY_TEST_PYTHON=${TRACKWAY_TEST_PYTHON:-$PWD/.venv/bin/python}
export TRACKWAY_TEST_EXAMPLES=1
# Real input for the tests that want it; without it they print that they were skipped.
if [ -z "${TRACKWAY_SHARED:-}" ] && [ -d ../shared ]; then TRACKWAY_SHARED=$(cd ../shared && pwd); export TRACKWAY_SHARED; fi
# Many tests wait: for processes, for files, for a disk.
export RUST_TEST_THREADS=${RUST_TEST_THREADS:-$(($(nproc) * 2))}
# The example jobs first: the tests of the binary run them.
"${CARGO:-cargo}" test --locked --manifest-path examples/rust/Cargo.toml --target-dir "${CARGO_TARGET_DIR:-target}"
"${CARGO:-cargo}" test --locked --workspace
