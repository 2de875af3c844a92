#!/usr/bin/env bash
# Builds the wheel for users into DIST (default: dist/): the module, and the binary as its command `trackway`.
# WHEEL_PROFILE (default: release) is the profile of the binary, WHEEL_BINARY one that is built already, MATURIN the builder.
# WHEEL_TARGET is a target of Rust, such as x86_64-unknown-linux-musl: zig compiles what is C and links, and ZIGBUILD builds the binary.
# WHEEL_GLIBC (with a target of glibc, such as x86_64-unknown-linux-gnu) is the oldest glibc that the wheel must work with.
set -euo pipefail
cd "$(dirname "$0")/../.."
profile=${WHEEL_PROFILE:-release} maturin=${MATURIN:-maturin} dist=${DIST:-dist} bytes_max=35000000
# What a package index accepts: https://github.com/pypa/auditwheel lists the contents of each of them.
manylinux=(17 24 26 27 28 31 34 35 36 37 38 39 40 41)

target=${WHEEL_TARGET:-} glibc=${WHEEL_GLIBC:-} build=("${CARGO:-cargo}" build) module=()
if [ -n "$target" ]; then
  [ -d "$(rustc --print sysroot)/lib/rustlib/$target" ] || { echo "the standard library is missing: rustup target add $target" >&2; exit 1; }
  build=("${ZIGBUILD:-cargo-zigbuild}" build --target "$target${glibc:+.$glibc}") module=(--target "$target" --zig)
fi

binary=${WHEEL_BINARY:-}
if [ -z "$binary" ]; then
  if [ -z "$target" ] && [ "$profile" = release ]; then scripts/package/release.sh
  else "${build[@]}" --locked --profile "$profile" -p trackway; fi
  folder=$profile
  [ "$profile" != dev ] || folder=debug
  binary=${CARGO_TARGET_DIR:-target}/${target:+$target/}$folder/trackway
fi

# maturin packs a folder of this name beside its pyproject.toml; it exists only while a wheel is built.
data=crates/edges/python/trackway._trackway.data
remove_data() { rm -rf "$data"; }
trap remove_data EXIT
remove_data
mkdir -p "$data/scripts"
strip -o "$data/scripts/trackway" "$binary"
chmod 755 "$data/scripts/trackway"

# maturin looks only at the module, but the tag must hold for the binary too. Without symbols of glibc it is a binary for musl.
needed=$(readelf --version-info --wide "$data/scripts/trackway" | sed -n 's/.*Name: GLIBC_2\.\([0-9]*\).*/\1/p' | sort -n | tail -n 1)
compatibility=()
# Of a glibc that is too new for any of them: for this machine and its like.
[ -z "$needed" ] || compatibility=(--compatibility linux)
for minor in "${manylinux[@]}"; do
  if [ -n "$needed" ] && [ "$minor" -ge "$needed" ]; then compatibility=(--compatibility "manylinux_2_$minor") && break; fi
done

level=9
[ "$profile" = release ] || level=1
rm -f "$dist"/trackway-*.whl
"$maturin" build --locked --profile quick --quiet --compression-level "$level" "${compatibility[@]}" "${module[@]}" -m crates/edges/python/Cargo.toml -o "$dist"

wheel=$(echo "$dist"/trackway-*.whl)
bytes=$(stat -c %s "$wheel")
echo "$wheel: $bytes bytes, the command of profile $profile"
[[ $(python3 -m zipfile --list "$wheel") == *.data/scripts/trackway\ * ]] || { echo "$wheel: the command is missing" >&2; exit 1; }
[ "$profile" != release ] || [ "$bytes" -lt "$bytes_max" ] || { echo "$wheel is larger than $bytes_max bytes" >&2; exit 1; }
[ -n "$glibc" ] || exit 0
unpacked=$(mktemp -d)
trap 'remove_data; rm -rf "$unpacked"' EXIT
python3 -m zipfile --extract "$wheel" "$unpacked"
find "$unpacked" \( -name '*.so' -o -path '*.data/scripts/trackway' \) -exec scripts/package/check_glibc.sh "$glibc" {} +
