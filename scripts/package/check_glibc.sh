#!/usr/bin/env bash
# Fails when a program or library needs a newer glibc than VERSION.
#   scripts/package/check_glibc.sh VERSION FILE…
set -euo pipefail
newest=$1
for file in "${@:2}"; do
  names=$(readelf --version-info --wide "$file" | grep -o 'GLIBC_[A-Z0-9_.]*' || true)
  # The one name that is not a number: relocations that only glibc 2.36 and newer read.
  needed=$(sed 's/^GLIBC_ABI_DT_RELR$/GLIBC_2.36/; s/^GLIBC_//' <<<"$names" | sort -V | tail -n 1)
  echo "$file: glibc ${needed:-none}"
  [ "$(printf '%s\n' "$needed" "$newest" | sort -V | tail -n 1)" = "$newest" ] || { echo "$file needs glibc $needed, newer than $newest" >&2; exit 1; }
done
