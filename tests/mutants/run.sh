#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The tests of the tests: puts one small fault at a time into a copy of the sources, builds the
# suite of that layer and runs it. A fault that no test finds has survived, and needs a test.
#
#   tests/mutants/run.sh                  all layers
#   tests/mutants/run.sh scheduler store  these layers
#   tests/mutants/run.sh --list           only whether each fault still applies; builds nothing
#     --only TEXT                         faults with TEXT in their title
#     --copy DIR                          where the copy is kept, to be built on the next time
#
# The faults of a layer are in <layer>.txt, four lines each: "@ title", "file path", "old text" and
# "new text" (empty: the old text is removed). The old text is a part of one line that occurs once
# in the file. Ends with status 1 if a fault has survived, no longer applies or does not compile.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
faults=$root/tests/mutants

usage() {
  sed -n 's/^#   //p' "${BASH_SOURCE[0]}" >&2
  exit 2
}
layers=()
only=
copy=
list=no
while (($#)); do
  case $1 in
    --list) list=yes ;;
    --only | --copy)
      if (($# < 2)); then usage; fi
      if [[ $1 == --only ]]; then only=$2; else copy=$2; fi
      shift
      ;;
    -*) usage ;;
    *)
      if [[ ! -f $faults/$1.txt ]]; then
        echo "run.sh: there is no $1.txt in tests/mutants" >&2
        exit 2
      fi
      layers+=("$1")
      ;;
  esac
  shift
done
if ((${#layers[@]} == 0)); then
  layers=(base scheduler store idempotency rpc remote engine procedures cluster)
fi

if [[ -z $copy ]]; then
  copy=$(mktemp -d "${TMPDIR:-/tmp}/pv2-mutants-XXXXXX")
  trap 'rm -rf "$copy"' EXIT
fi
trap 'exit 130' INT TERM
# The copy in "true" stays as it is, so that edits of the sources do not change a running test.
rm -rf "$copy/true"
mkdir -p "$copy/true" "$copy/source"
(cd "$root" && tar --exclude=./build --exclude=./.git -cf - .) | tar -xf - -C "$copy/true"
# An unchanged file keeps its time, so that a kept copy is not rebuilt. Where an earlier run left a
# fault, the true text gets a newer time than the objects built from the fault.
(cd "$copy/true" && find . -type f) | while IFS= read -r file; do
  if ! cmp -s "$copy/true/$file" "$copy/source/$file"; then
    install -D -m "$(stat -c %a "$copy/true/$file")" "$copy/true/$file" "$copy/source/$file"
  fi
done
(cd "$copy/source" && find . -type f) | while IFS= read -r file; do
  if [[ ! -f $copy/true/$file ]]; then rm "$copy/source/$file"; fi  # it was moved or deleted
done
faults=$copy/true/tests/mutants

# A fault may make a test wait for ever: 300 s are many times the length of a suite.
run_suite() { timeout 300 "$copy/build/tests/$1_tests" --abort >"$copy/output" 2>&1; }
build_suite() { ninja -C "$copy/build" "$1_tests" >"$copy/output" 2>&1; }

prepare() {
  if [[ ! -f $copy/build/build.ninja ]]; then
    cmake -S "$copy/source" -B "$copy/build" -G Ninja -DCMAKE_BUILD_TYPE=None \
      -DCMAKE_CXX_FLAGS=-O1 -DPV2_BUILD_BENCH=OFF >"$copy/output" 2>&1
  fi
  if ! build_suite "$1" || ! run_suite "$1"; then
    tail -n 40 "$copy/output"
    echo "mutants: $1_tests fails without any fault; the end of its output is above"
    exit 1
  fi
}

killed=0
survived=()
broken=()

# judge <layer> <title> <file> <old> <new>
judge() {
  local layer=$1 title=$2 file=$3 old=$4 new=$5 count
  if [[ -n $only && $title != *"$only"* ]]; then return; fi
  count=$({ grep -oF -- "$old" "$copy/true/$file" || true; } | wc -l)
  if [[ $count != 1 ]]; then
    broken+=("$layer: $title (its text occurs $count times in $file)")
    echo "BROKEN    $layer: $title"
    return
  fi
  if [[ $list == yes ]]; then
    echo "applies   $layer: $title"
    return
  fi
  local text
  text=$(<"$copy/true/$file")
  printf '%s\n' "${text/"$old"/"$new"}" >"$copy/source/$file"
  if ! build_suite "$layer"; then
    broken+=("$layer: $title (does not compile)")
    echo "BROKEN    $layer: $title"
    { grep -m 3 error "$copy/output" || true; } | sed 's/^/          /'
  elif run_suite "$layer"; then
    survived+=("$layer: $title ($file)")
    echo "SURVIVED  $layer: $title"
  else
    ((killed += 1))
    echo "killed    $layer: $title"
  fi
  # The true text gets a newer time than the objects built from the fault.
  cat "$copy/true/$file" >"$copy/source/$file"
}

for layer in "${layers[@]}"; do
  if [[ $list == no ]]; then prepare "$layer"; fi
  title= file= old=
  while IFS= read -r line <&3 || [[ -n $line ]]; do
    case $line in
      '@ '*) title=${line#@ } ;;
      'file '*) file=${line#file } ;;
      'old '*) old=${line#old } ;;
      new*) new=${line#new} && judge "$layer" "$title" "$file" "$old" "${new# }" ;;
      '' | '#'*) ;;
      *)
        echo "run.sh: what is '$line' in $layer.txt?" >&2
        exit 2
        ;;
    esac
  done 3<"$faults/$layer.txt"
done

if [[ $list == no ]]; then
  echo "mutants: $killed killed, ${#survived[@]} survived, ${#broken[@]} broken"
fi
for line in ${survived[@]+"${survived[@]}"}; do echo "  survived: $line"; done
for line in ${broken[@]+"${broken[@]}"}; do echo "  broken: $line"; done
((${#survived[@]} == 0 && ${#broken[@]} == 0))
