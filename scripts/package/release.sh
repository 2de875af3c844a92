#!/usr/bin/env bash
# Builds the release binary; arguments are those of `cargo rustc`, such as --features. Where Rust links with its own LLD, link-time
# optimization is the linker's: it uses all cores, and folds equal functions (docs/building.md). Elsewhere it is the compiler's.
set -euo pipefail
cd "$(dirname "$0")/../.."
host=$(rustc -vV | sed -n 's/^host: //p')
build=("${CARGO:-cargo}" rustc --locked --release -p trackway --bin trackway "$@")
if [ "$host" = x86_64-unknown-linux-gnu ] && [ -x "$(rustc --print sysroot)/lib/rustlib/$host/bin/rust-lld" ]; then
  # Only functions of up to 5 instructions are inlined across crates: what is generic or marked as inline is in each crate anyway.
  build+=(-- -C lto=off -C linker-plugin-lto -C link-arg=-Wl,--icf=safe -C link-arg=-Wl,-mllvm,-import-instr-limit=5)
fi
exec "${build[@]}"
