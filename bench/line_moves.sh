#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Counts the lines of memory that move between the caches of threads for each step in memory, and
# says where in the program.
#
#   bench/line_moves.sh [OPTIONS OF memory_steps_bench]
#   bench/line_moves.sh --workers=8 --in-flight=64
#
# A step that touches what another processor has waits for it: 50 ns each time if the two processors
# share a cache, and 200 ns if not. bench/line_moves/line_moves.cc says how it is counted. Each
# worker counts as if it had a processor and a cache of its own, also where more workers than
# processors take turns of a few microseconds. Other programs must not use the processors meanwhile.
# By default: two workers, 64 procedures in flight, callbacks on the engine's threads.
set -euo pipefail
cd "$(dirname "$0")/.."

cmake --preset lines >/dev/null
cmake --build --preset lines >/dev/null
program=build/lines/bench/memory_steps_bench
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

options=(--runs=1 --window=3000 --scheduler=master --user-work=0 --steps=5 --verbs=three
  --callbacks=engine --workers=2 --in-flight=64)
workers=2
for option in "$@"; do
  case $option in --workers=*) workers=${option#*=} ;; esac
done
# The hooks make the program about eight times as slow, and workers take turns on the processors.
processors=$(nproc)
slower=$((8 * (workers > processors ? (workers + processors - 1) / processors : 1)))
export PV2_SLOWER=$slower PV2_LINE_MOVES=$scratch/places
"$program" "${options[@]}" "$@" >"$scratch/results" 2>"$scratch/log" ||
  { cat "$scratch/log" >&2; exit 1; }
per_step=$(sed -n 's/.*"lines_moved_per_step":\([0-9.e+-]*\).*/\1/p' "$scratch/results" | tail -1)
[ -n "$per_step" ] || { echo "line_moves.sh: the program has counted no lines" >&2; exit 1; }

# The innermost three functions at each place: a line of addr2line with the name, then the place.
cut -d' ' -f1 "$scratch/places" | addr2line -aCfi -e "$program" >"$scratch/names"
awk -v per_step="$per_step" '
  FNR == NR { moves[$1] += $2; all += $2; next }
  /^0x/ {
    address = $1
    sub(/^0x0+/, "0x", address)
    depth = 0
    names[address] = ""
    next
  }
  {
    name = $0
    getline at
    sub(/ .*/, "", at)
    sub(/.*\//, "", at)
    sub(/\(.*/, "", name)
    gsub(/pv2::/, "", name)
    name = substr(name, length(name) > 40 ? length(name) - 39 : 1)
    if (depth++ < 3) names[address] = names[address] (depth > 1 ? " < " : "") name " " at
  }
  END {
    printf "%.2f lines per step move between threads\n", per_step
    for (each in moves) sum[names[each]] += moves[each]
    for (each in sum) {
      if (sum[each] / all * per_step >= 0.02) {
        printf "%7.3f  %s\n", sum[each] / all * per_step, each | "sort -rn"
      }
    }
  }' "$scratch/places" "$scratch/names"
