#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Counts the instructions of the engine's main paths and compares them with bench/instructions.txt.
#
#   bench/instructions.sh PROGRAM            compares; fails when a path grew by more than 10 %
#   bench/instructions.sh PROGRAM --record   writes the counts as the new record
#
# The counts belong to a compiler, which the record names. With another compiler a path may be 25 %
# more expensive before it fails, because part of the difference comes from the compiler.
#
# Each path runs with COUNT and with 2 x COUNT repetitions: the difference, divided by COUNT, is the
# cost of one repetition without start-up. The counts do not depend on the machine's load, only on
# the compiler, the libraries and the code. So a change that makes a path more expensive changes the
# record in the same commit, on purpose. PROGRAM is instruction_paths of the release preset.
set -euo pipefail

program=${1:?usage: bench/instructions.sh PROGRAM [--record]}
mode=${2:-compare}
here=$(cd "$(dirname "$0")" && pwd)
record=$here/instructions.txt
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

count_of() {  # path repetitions
  valgrind --tool=callgrind --callgrind-out-file="$scratch/out" "$program" "$1" "$2" \
    >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; exit 1; }
  awk '/^summary:/ { print $2 }' "$scratch/out"
}

# path, repetitions, units per repetition, what a unit is
paths='noop_master 480 5 step
noop_simple 480 5 step
noop_callbacks 1280 5 step
noop_execute 480 5 step
contended 480 5 step
memory 480 5 step
retry 400 1 attempt
wait 400 1 wait
children 200 5 step
restart 400 8 procedure'

compiler=$("$program" --compiler)
growth_max=10
if ! grep -qxF "# compiler: $compiler" "$record" 2>/dev/null; then
  growth_max=25
  echo "recorded with another compiler than $compiler: paths may grow by $growth_max %"
fi

failed=0
passed=0
: >"$scratch/new"
while read -r path repetitions units unit; do
  once=$(count_of "$path" "$repetitions")
  twice=$(count_of "$path" $((2 * repetitions)))
  now=$(((twice - once) / (repetitions * units)))
  echo "$path $now per $unit" >>"$scratch/new"
  before=$(awk -v path="$path" '$1 == path { print $2 }' "$record" 2>/dev/null || true)
  verdict=new
  if [ -n "$before" ]; then
    verdict=ok
    [ $((now * 100)) -le $((before * (100 + growth_max))) ] ||
      verdict="GREW BY MORE THAN $growth_max %"
  fi
  printf '%-12s %6d instructions per %-8s recorded %6s  %s\n' \
    "$path" "$now" "$unit" "${before:--}" "$verdict"
  if [ "$verdict" = ok ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
done <<<"$paths"

if [ "$mode" = --record ]; then
  {
    echo '# Instructions per unit of each path, counted by bench/instructions.sh.'
    echo '# A change that makes a path dearer changes its line here, on purpose.'
    echo "# compiler: $compiler"
    cat "$scratch/new"; } >"$record"
  echo "recorded in bench/instructions.txt"
  exit 0
fi
echo "instruction counts: $passed passed, $failed failed"
[ "$failed" = 0 ]
