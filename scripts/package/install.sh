#!/bin/sh
# Installs the binary of Trackway for one user, with completions and man pages, and takes it away again.
set -eu

usage() {
  cat <<'END'
Usage: install.sh [--sha256 HEX] [--prefix DIR] SOURCE
       install.sh [--prefix DIR] --uninstall

SOURCE is a file or a URL: the binary, or a .tar.gz with it. Its SHA-256 is given with --sha256, or is in SOURCE.sha256 beside it.
DIR is ~/.local if not given: the binary goes to DIR/bin, completions and man pages to DIR/share, the completions for
fish to the folder of its settings. A version that is installed already is replaced.
END
}

fail() { # MESSAGE HINT
  printf 'install.sh: %s\n' "$1" >&2
  [ -z "${2:-}" ] || printf 'hint: %s\n' "$2" >&2
  exit 1
}

say() { printf 'install.sh: %s\n' "$*"; }

fetch() { # SOURCE FILE
  case $1 in
    http://*) fail "\`$1\` is not encrypted" "use https://" ;;
    https://*)
      if command -v curl >/dev/null 2>&1; then curl --fail --location --proto '=https' --silent --show-error --output "$2" "$1"
      elif command -v wget >/dev/null 2>&1; then wget --quiet --output-document "$2" "$1"
      else fail "neither curl nor wget is installed" "install one of them, or download SOURCE and name the file"; fi ;;
    *) cp "$1" "$2" ;;
  esac
}

sha256_of() { # FILE
  if command -v sha256sum >/dev/null 2>&1; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d ' ' -f 1
}

# The files of an installation, one a line; what is in the list and not installed again is removed.
remove_listed() { # LIST [LIST OF WHAT IS KEPT]
  [ -f "$1" ] || return 0
  while IFS= read -r file; do
    if [ -n "${2:-}" ] && grep -qxF -- "$file" "$2"; then continue; fi
    rm -f -- "$file"
  done <"$1"
}

put() { # FILE PLACE MODE: written beside its place and renamed, so that a command which is running keeps its file
  mkdir -p "$(dirname "$2")"
  cp "$1" "$2.new"
  chmod "$3" "$2.new"
  mv -f "$2.new" "$2"
  printf '%s\n' "$2" >>"$work/list"
}

prefix=${HOME:?}/.local source='' sha256='' uninstall=''
while [ $# -gt 0 ]; do
  case $1 in
    --sha256 | --prefix)
      [ $# -gt 1 ] || fail "\`$1\` needs a value" "see --help"
      if [ "$1" = --sha256 ]; then sha256=$2; else prefix=$2; fi
      shift ;;
    --uninstall) uninstall=yes ;;
    -h | --help) usage && exit 0 ;;
    -*) fail "unknown option \`$1\`" "see --help" ;;
    *)
      [ -z "$source" ] || fail "two sources: \`$source\` and \`$1\`" "see --help"
      source=$1 ;;
  esac
  shift
done
case $prefix in /*) ;; *) prefix=$PWD/$prefix ;; esac
bin=$prefix/bin share=$prefix/share
list=$share/trackway/installed-files
fish=${XDG_CONFIG_HOME:-$HOME/.config}/fish/completions

if [ -n "$uninstall" ]; then
  [ -z "$source$sha256" ] || fail "--uninstall takes only --prefix" "see --help"
  [ -f "$list" ] || fail "nothing of Trackway is installed in \`$prefix\`: there is no \`$list\`" "name its folder with --prefix"
  count=$(wc -l <"$list")
  remove_listed "$list"
  rm -f -- "$list"
  rmdir -- "$share/trackway" 2>/dev/null || :
  say "removed $((count)) files of Trackway from $prefix; homes with runs (.trackway) are kept"
  exit 0
fi
[ -n "$source" ] || { usage >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
fetch "$source" "$work/source" || fail "cannot read \`$source\`" "check the name, and whether it can be reached"
if [ -z "$sha256" ]; then
  fetch "$source.sha256" "$work/sha256" 2>/dev/null || fail "the SHA-256 of \`$source\` is not known" "give it with --sha256"
  sha256=$(cut -d ' ' -f 1 <"$work/sha256" | head -n 1)
fi
found=$(sha256_of "$work/source")
[ "$found" = "$sha256" ] || fail "\`$source\` has SHA-256 $found, not $sha256: nothing was installed" "download it again"

case $source in
  *.tar.gz | *.tgz)
    mkdir "$work/archive"
    tar -xzf "$work/source" -C "$work/archive" || fail "\`$source\` cannot be unpacked"
    binary=$(find "$work/archive" -type f -name trackway | head -n 1)
    [ -n "$binary" ] || fail "there is no file \`trackway\` in \`$source\`" ;;
  *) binary=$work/source ;;
esac
chmod 755 "$binary"
version=$("$binary" --version) || fail "\`$source\` does not run on this machine ($(uname -sm))" "another build may (docs/building.md); where programs in /tmp are not started, set TMPDIR"

mkdir "$work/made"
for shell in bash zsh fish; do "$binary" config completions $shell >"$work/made/$shell"; done
"$binary" config man --out "$work/made/man" 2>/dev/null
put "$binary" "$bin/trackway" 755
put "$work/made/bash" "$share/bash-completion/completions/trackway" 644
put "$work/made/zsh" "$share/zsh/site-functions/_trackway" 644
put "$work/made/fish" "$fish/trackway.fish" 644
pages=0
for page in "$work"/made/man/*; do
  put "$page" "$share/man/man1/${page##*/}" 644
  pages=$((pages + 1))
done
remove_listed "$list" "$work/list"
mkdir -p "${list%/*}"
mv -f "$work/list" "$list"

say "$version is $bin/trackway (SHA-256 of the source: $found)"
say "completions for bash, zsh and fish, and $pages man pages, are in $share and $fish"
case :$PATH: in *":$bin:"*) ;; *) say "add it to PATH: export PATH=\"$bin:\$PATH\"" ;; esac
case ${SHELL:-} in */zsh) say "for zsh, before compinit: fpath+=($share/zsh/site-functions)" ;; esac
say "to remove it: install.sh$([ "$prefix" = "$HOME/.local" ] || printf ' --prefix %s' "$prefix") --uninstall"
