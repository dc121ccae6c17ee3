#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Compares two builds: runs one program of bench/ of each in turn, round by round, and prints each
# figure of both with their ratio, the second build over the first. That is how a gain is shown. It
# builds nothing but what prints the table: the folders are those of programs that are there, such
# as build/release/bench of two checkouts.
#
#   bench/compare.sh FIRST SECOND PROGRAM [--rounds N] [--data DIR] [-- ARGUMENT...]
#
#   bench/compare.sh ../before/build/release/bench build/release/bench durable_steps_bench \
#     -- --points=1,64,4096
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)

usage() {
  sed -n 's/^#   //p' "${BASH_SOURCE[0]}" >&2
  exit 2
}
(($# >= 3)) || usage
first=$1 second=$2 program=$3
shift 3
rounds=5
data=$root/build
while (($#)); do
  case $1 in
    --rounds | --data)
      (($# >= 2)) || usage
      if [[ $1 == --rounds ]]; then rounds=$2; else data=$2; fi
      shift
      ;;
    --)
      shift
      break
      ;;
    *) usage ;;
  esac
  shift
done
[[ $rounds =~ ^[1-9][0-9]*$ ]] || usage
for folder in "$first" "$second"; do
  if [[ ! -x $folder/$program ]]; then
    echo "compare.sh: there is no program '$program' in $folder; build bench_programs there" >&2
    exit 2
  fi
done
"$root/cmake/build_preset.sh" release compare_builds >&2

folder=$(mktemp -d "$data/pv2-compare-XXXXXX")
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM
for ((round = 1; round <= rounds; ++round)); do
  echo "== round $round of $rounds" >&2
  # Which goes first changes from round to round.
  order=(a b)
  if ((round % 2 == 0)); then order=(b a); fi
  for build in "${order[@]}"; do
    from=$first
    if [[ $build == b ]]; then from=$second; fi
    "$from/$program" --runs=1 "--data=$folder" "$@" >"$folder/$build-$round" 2>"$folder/said" || {
      cat "$folder/said" >&2
      exit 1
    }
  done
done
"$root/build/release/bench/compare_builds" "$folder"
