#!/usr/bin/env bash
# Builds CPython against musl into FOLDER, from Debian's sources: it tests the wheel for musl on a machine whose own libc is glibc.
# Debian's musl-tools and a `deb-src` entry of apt are needed; FOLDER may have the two source archives already.
set -euo pipefail
folder=$(realpath -m "${1:?Usage: scripts/package/musl_python.sh FOLDER}") jobs=$(nproc)
[ ! -x "$folder/bin/python3" ] || exit 0
command -v musl-gcc >/dev/null || { echo "musl-gcc is missing: install musl-tools" >&2; exit 1; }
mkdir -p "$folder/src"
cd "$folder/src"
for name in python3.11 zlib; do
  compgen -G "${name}_*.orig.tar.*" >/dev/null || apt-get source --quiet --quiet --download-only "$name" || true
  compgen -G "${name}_*.orig.tar.*" >/dev/null || { echo "the source of $name is missing: apt needs a deb-src entry" >&2; exit 1; }
  mkdir -p "$name" && tar --extract --strip-components=1 --directory "$name" --file "$(compgen -G "${name}_*.orig.tar.*")"
done

# pip reads archives with zlib.
(cd zlib && CC=musl-gcc ./configure --static --prefix="$folder" && make CFLAGS="-O2 -fPIC" -j "$jobs" install) >zlib.log 2>&1 ||
  { tail zlib.log >&2; exit 1; }

# The compiler would name the folders of glibc to `configure`, and to `setup.py` with one dash.
cat >cc <<'CC'
#!/bin/sh
for argument in "$@"; do
  case $argument in --print-multiarch) exit 0 ;; -print-multiarch) echo "$(uname -m)-linux-musl" && exit 0 ;; esac
done
exec musl-gcc "$@"
CC
chmod +x cc
(cd python3.11 && CC="$PWD/../cc" CPPFLAGS="-I$folder/include" LDFLAGS="-L$folder/lib" OPT="-O1 -DNDEBUG" \
  ./configure --prefix="$folder" --disable-test-modules && make -j "$jobs" install) >python.log 2>&1 || { tail python.log >&2; exit 1; }
"$folder/bin/python3" -c 'import sys, zlib; print(sys.version)'
