#!/usr/bin/env bash
# Makes the virtual environments for benchmarks, one per peer since their requirements exclude each other.
# Usage: bench/data/peers.sh [FOLDER=target/peers] [NAME...]      all of them, or those named
set -eu
folder=${1:-target/peers}
[ $# -eq 0 ] || shift
wanted=" $* "
peer() {
  local name=$1; shift
  [ "$wanted" = "  " ] || case $wanted in *" $name "*) ;; *) return 0 ;; esac
  [ -e "$folder/$name/ready" ] && return
  "${PYTHON:-python3}" -m venv "$folder/$name"
  "$folder/$name/bin/pip" install --quiet --disable-pip-version-check "$@"
  touch "$folder/$name/ready"
}
peer base duckdb polars pyarrow pandas scipy numpy 'pandera[polars]'
peer gx great_expectations pyarrow
peer ydata ydata-profiling setuptools pyarrow
peer whylogs whylogs 'pandas<3' 'numpy<2' 'pyarrow<20'
peer nannyml nannyml pyarrow statsmodels
peer deepchecks deepchecks 'scikit-learn<1.5' 'numpy<2' 'pandas<3' setuptools 'pyarrow<20'
peer slices sliceline scikit-learn pandas pyarrow
peer metrics scikit-learn fairlearn pandas pyarrow
peer mlflow mlflow numpy
peer cleanlab cleanlab scikit-learn pandas pyarrow
