# Steps of .ci/run: each is timed, and printed beside its budget in .ci/budget. A step that fails ends the run.

taken=()
declare -A pid_of
logs=$(mktemp -d)
# What still runs beside a step that failed is awaited, so that its servers end too, and what it printed is shown.
trap 'status=$?; for name in "${!pid_of[@]}"; do show "$name" || true; done; rm -rf "$logs"; exit "$status"' EXIT

# The seconds that a step may take.
budget_of() {
  awk -v name="$1" '{ seconds = $1; sub(/^[0-9]+ +/, "") } $0 == name { print seconds; found = 1 } END { exit !found }' .ci/budget ||
    { echo "$1 is not in .ci/budget" >&2; return 1; }
}

# A step that took so many seconds.
took() {
  local name=$1 seconds=$2 budget line
  budget=$(budget_of "$name")
  line="$name: $seconds s of $budget s"
  [ "$seconds" -le "$budget" ] || line+=" (over its budget)"
  taken+=("$line")
  printf '\n== %s\n' "$line"
}

# Runs a step: `step NAME COMMAND…`.
step() {
  local name=$1 started=$SECONDS
  budget_of "$name" >/dev/null
  printf '\n== %s (at %d s)\n' "$name" "$started"
  "${@:2}"
  took "$name" $((SECONDS - started))
}

# Begins a step that runs beside those that follow, until `ended NAME`. Its output is printed there, whole.
beside() {
  local name=$1
  budget_of "$name" >/dev/null
  printf '\n== %s (at %d s, beside what follows)\n' "$name" "$SECONDS"
  (
    trap - EXIT
    started=$SECONDS status=0
    "${@:2}" || status=$?
    echo $((SECONDS - started)) >"$logs/$name.seconds"
    exit "$status"
  ) >"$logs/$name" 2>&1 &
  pid_of[$name]=$!
}

# Waits for a step beside others and prints its output; the status is that of the step.
show() {
  local name=$1 status=0
  wait "${pid_of[$name]}" || status=$?
  unset "pid_of[$name]"
  printf '\n== %s, which ran beside others\n' "$name"
  cat "$logs/$name"
  [ "$status" = 0 ] || printf '\n== %s failed with status %d\n' "$name" "$status" >&2
  return "$status"
}

ended() {
  show "$1"
  took "$1" "$(cat "$logs/$1.seconds")"
}

# The steps together, at the end.
all_steps() {
  local all=$SECONDS at_most
  at_most=$(budget_of "all, at most")
  printf '\n== all steps\n'
  printf '%s\n' "${taken[@]}"
  took all "$all"
  [ "$all" -le "$at_most" ] || printf '\n== IN ALL %d S, AND AT MOST %d S ARE ALLOWED: CI IS TOO SLOW\n' "$all" "$at_most"
}
