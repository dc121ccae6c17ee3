#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Every test that docs/behaviour.md names exists: its name is the beginning of the title of a test
# case somewhere under tests/. Says nothing about whether that test passes. Prints the rows that
# name a test that does not exist, and fails.
#
#   behaviour_test.sh <source tree>
#   behaviour_test.sh --self-test <source tree>   does a row without a test make it fail?
set -euo pipefail
page=docs/behaviour.md
if [[ $1 == --self-test ]]; then
  shift
  page=$(mktemp)
  trap 'rm -f "$page"' EXIT
  printf '| row | behaviour | test |\n| 1 | b | there is no test of this %s |\n' name >"$page"
  if bash "$0" "$1" "$page" >/dev/null; then
    echo "a row that names no test went unnoticed"
    exit 1
  fi
  exit 0
fi
page=${2:-$page}
cd "$1"

# A title may be spread over several literals, so the sources are joined to one line first.
titles=$(find tests -name '*_test.cc' -print0 | xargs -0 cat | tr '\n' ' ' | sed 's/"  *"//g')

rows=0
missing=0
while IFS='|' read -r _ row _ tests _; do
  row=$(xargs <<<"$row")
  case $row in row | ---) continue ;; esac
  rows=$((rows + 1))
  while IFS= read -r name; do
    name=$(sed 's/^ *//; s/ *$//' <<<"$name")
    if [[ -z $name ]] || ! grep -qF "\"$name" <<<"$titles"; then
      echo "$page: row $row: there is no test \"$name\""
      missing=$((missing + 1))
    fi
  done < <(tr ';' '\n' <<<"$tests")
done < <(grep -E '^\|' "$page")

if ((rows == 0)); then
  echo "$page: no rows were found"
  exit 1
fi
if ((missing != 0)); then exit 1; fi
echo "behaviour: $rows rows name tests that exist"
