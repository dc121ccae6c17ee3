#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# tests/behaviour.md and tests/known-failures.md hold every row of the requirements' lists, once,
# and every test that a row names exists: its name is the beginning of the title of a test case
# somewhere under tests/. A row without a test has "-" there and says in its second column why,
# beginning with "Does not apply: " or "Cannot happen: ". This checks no test's result. Prints what
# is wrong, and fails.
#
#   behaviour_test.sh <source tree>
#   behaviour_test.sh --self-test <source tree>   is each of these faults found?
set -euo pipefail

# The rows that must exist: <prefix><first>-<last>. A prefix may end in "-". If the first number
# begins with 0, all numbers have two digits.
required='1-67 71-76 79-79 83-84 86-86 88-116 121-126'
required+=' X1-16 F1-40 I1-12 R1-16 P-01-23'

# check <page>...: prints what is wrong with the rows of all pages together.
check() {
  # A title may be spread over several literals, so the sources are joined to one line first.
  find tests -name '*_test.cc' -print0 | xargs -0 cat | tr '\n' ' ' | sed 's/"  *"//g' |
    awk -F'|' -v required="$required" '
      function trim(text) { gsub(/^ +| +$/, "", text); return text }
      FILENAME == "-" { titles = titles $0; next }
      !/^\|/ { next }
      {
        row = trim($2); why = trim($3); tests = trim($4)
        if (row == "row" || row == "---") next
        ++rows
        if (seen[row]++) print FILENAME ": row " row " stands there twice"
        if (tests == "-") {
          if (why !~ /^(Does not apply|Cannot happen): /) {
            print FILENAME ": row " row " has no test and does not say why"
          }
          next
        }
        if (why ~ /^(Does not apply|Cannot happen): /) {
          print FILENAME ": row " row " says why there is no test, and names one"
        }
        count = split(tests, names, ";")
        if (count == 0) print FILENAME ": row " row " has no third column"
        for (i = 1; i <= count; ++i) {
          name = trim(names[i])
          if (name == "" || index(titles, "\"" name) == 0) {
            print FILENAME ": row " row ": there is no test \"" name "\""
          }
        }
      }
      END {
        parts = split(required, ranges, " ")
        for (i = 1; i <= parts; ++i) {
          prefix = match(ranges[i], /^[A-Z]-?/) ? substr(ranges[i], 1, RLENGTH) : ""
          split(substr(ranges[i], length(prefix) + 1), ends, "-")
          format = ends[1] ~ /^0/ ? "%s%02d" : "%s%d"
          for (n = ends[1] + 0; n <= ends[2] + 0; ++n) {
            row = sprintf(format, prefix, n)
            if (!seen[row]) print "row " row " is missing"
          }
        }
      }' - "$@"
}

if [[ $1 == --self-test ]]; then
  cd "$2"
  page=$(mktemp)
  trap 'rm -f "$page"' EXIT
  # must_find <what is printed> <row>
  must_find() {
    printf '| row | behaviour | test |\n| --- | --- | --- |\n%s\n' "$2" >"$page"
    # Not a pipe: grep ends at the first match, and the writer of a pipe would fail then.
    if ! grep -qF -- "$1" <<<"$(check "$page")"; then
      echo "not found: $1"
      exit 1
    fi
  }
  here='every test that a row names exists'  # no title of a test case
  must_find "there is no test \"$here\"" "| 1 | b | $here |"
  must_find 'row 1 stands there twice' $'| 1 | Does not apply: x | - |\n| 1 | b | - |'
  must_find 'row 1 has no test and does not say why' '| 1 | it works | - |'
  must_find 'row 1 says why there is no test, and names one' "| 1 | Does not apply: x | $here |"
  must_find 'row 2 is missing' '| 1 | Does not apply: x | - |'
  must_find 'row X16 is missing' '| 1 | Does not apply: x | - |'
  must_find 'row P-01 is missing' '| 1 | Does not apply: x | - |'
  must_find 'row 1 has no third column' '| 1 | b | |'
  exit 0
fi

cd "$1"
wrong=$(check tests/behaviour.md tests/known-failures.md)
if [[ -n $wrong ]]; then
  echo "$wrong"
  exit 1
fi
echo "behaviour: every row is there, and names tests that exist"
