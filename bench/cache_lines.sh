#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Counts the lines of memory that a durable step needs and does not find in a cache.
#
#   bench/cache_lines.sh PROGRAM [IN_FLIGHT [BYTES]]
#
# PROGRAM is durable_steps_bench of the release preset. It runs under callgrind, which simulates one
# processor with a first cache of 48 KiB and a last one of BYTES, a power of two (8 MiB: what is
# left of a cache that is shared with others). With thousands in flight these lines take more time
# than the instructions, and a clock cannot tell: other guests of the host change its time by a
# factor of two. What two processors take from each other is not in the counts, nor are misses of
# code. Three runs of one program gave 42.8, 43.1 and 43.9 lines per step.
#
# Prints misses of data per step in all, and of the functions with the most. In them are the start
# of the program, raw syncs, and LevelDB alone, which it measures afterwards.
set -euo pipefail

program=${1:?usage: bench/cache_lines.sh PROGRAM [IN_FLIGHT [BYTES]]}
in_flight=${2:-4096}
bytes=${3:-$((8 << 20))}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

valgrind --tool=callgrind --cache-sim=yes --I1=32768,8,64 --D1=49152,12,64 "--LL=$bytes,16,64" \
  --callgrind-out-file="$scratch/out" \
  "$program" --runs=1 --window=40000 "--points=$in_flight" --workers=1 >"$scratch/log" 2>&1 ||
  { cat "$scratch/log" >&2; exit 1; }

# Events: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw. A name is written once and then only its number. A
# line behind "calls=" is the cost of the called function, which has lines of its own.
awk '
  function name_of(text) {
    if (match(text, /\) /)) names[substr(text, 1, RSTART)] = substr(text, RSTART + 2)
    sub(/\).*/, ")", text)
    return text
  }
  /^fn=/ { function_now = name_of(substr($0, 4)); next }
  /^cfn=/ { called = name_of(substr($0, 5)); next }
  /^calls=/ {
    if (names[called] ~ /Workers::run_step/) steps += substr($1, 7)
    is_call = 1
    next
  }
  /^[0-9+*-]/ {
    if (is_call) { is_call = 0; next }
    first[function_now] += $6 + $7
    last[function_now] += $9 + $10
  }
  END {
    if (steps == 0) {
      print "cache_lines.sh: no call of Workers::run_step is in the profile" > "/dev/stderr"
      exit 1
    }
    for (each in last) { all_first += first[each]; all_last += last[each] }
    printf "%d steps\n%8s %8s  per step, missed in the first cache and in the last one\n", \
        steps, "first", "last"
    printf "%8.2f %8.2f  all\n", all_first / steps, all_last / steps
    for (each in last) {
      if (last[each] / steps < 0.2) continue
      printf "%8.2f %8.2f  %s\n", first[each] / steps, last[each] / steps, names[each] | \
          "LC_ALL=C sort -rnk2"
    }
  }' "$scratch/out"
