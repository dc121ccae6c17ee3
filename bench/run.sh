#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the benchmarks, runs them one after another, and prints the measured figures next to their
# targets (bench/targets.txt) and the limits of the machine. No other program should be running. It
# judges nothing: the exit code says whether everything could be measured.
#
#   bench/run.sh               all of it, medians of 5 rounds: about 10 minutes
#   bench/run.sh --quick       3 rounds of shorter windows: under 3 minutes
#     --json FILE              the figures as JSON lines (docs/performance.md describes the fields)
#     --chart FILE             an SVG of durable steps/s over the procedures in flight
#     --data DIR               where the stores are written; a folder on a disk, build/ unless given
#     --only PROGRAM           only this program of bench/ (may be repeated)
set -euo pipefail
caller=$PWD
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)

usage() {
  sed -n 's/^#   //p' "${BASH_SOURCE[0]}" >&2
  exit 2
}
# Makes a path that is relative to the caller's directory absolute.
at_caller() { case $1 in /*) echo "$1" ;; *) echo "$caller/$1" ;; esac; }

quick=()
json=
chart=
data=$root/build
only=()
while (($#)); do
  case $1 in
    --quick) quick=(--quick) ;;
    --json | --chart | --data | --only)
      if (($# < 2)); then usage; fi
      case $1 in
        --json) json=$(at_caller "$2") ;;
        --chart) chart=$(at_caller "$2") ;;
        --data) data=$(at_caller "$2") ;;
        --only) only+=("$2") ;;
      esac
      shift
      ;;
    *) echo "run.sh: what is '$1'?" >&2; usage ;;
  esac
  shift
done

"$root/cmake/install_packages.sh"
"$root/cmake/build_preset.sh" release bench_programs
bin=$root/build/release/bench

programs=(durable_steps_bench memory_steps_bench submit_bench tree_bench waiting_bench wake_bench
  dedup_bench rpc_bench cluster_bench replay_bench scheduler_bench)
if ((${#only[@]})); then programs=("${only[@]}"); fi
for program in "${programs[@]}"; do
  if [[ ! -x $bin/$program ]]; then
    echo "run.sh: there is no program '$program' in bench/; there are: ${programs[*]}" >&2
    exit 2
  fi
done

folder=$(mktemp -d "$data/pv2-bench-run-XXXXXX")
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM
results=$folder/results.jsonl
begin=$SECONDS
for program in "${programs[@]}"; do
  echo "== $program (after $((SECONDS - begin)) s)" >&2
  arguments=("${quick[@]}" "--data=$folder")
  # The scheduler benchmark writes no store, and prints JSON on request.
  if [[ $program == scheduler_bench ]]; then arguments=("${quick[@]}" --json); fi
  "$bin/$program" "${arguments[@]}" >>"$results"
done
echo "== measured in $((SECONDS - begin)) s on $(nproc) processors, $(uname -sr)" >&2
echo
"$bin/results_table" "$root/bench/targets.txt" "$results"
if [[ -n $json ]]; then cp "$results" "$json"; fi
if [[ -n $chart ]]; then "$bin/steps_chart" "$results" >"$chart"; fi
