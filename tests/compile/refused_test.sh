#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# usage: refused_test.sh COMPILER FLAGS...
#
# Compiles refused.cc and expects, for each of its comments "// refused: sentence", an error with
# that sentence, no other errors, and few lines of output; and compiles accepted.cc and expects no
# error. Fails with what was missing.
set -u
here=$(cd "$(dirname "$0")" && pwd)
compile=("$@" -std=c++20 -fsyntax-only -Wall -Wextra)
failures=0
complain() {
  echo "refused_test: $*"
  failures=$((failures + 1))
}

said=$("${compile[@]}" "$here/accepted.cc" 2>&1) || complain "accepted.cc is refused:"$'\n'"$said"

"$1" --version | grep -q clang && compile+=(-ferror-limit=0)
said=$("${compile[@]}" "$here/refused.cc" 2>&1) && complain "refused.cc compiles"

wanted=$(sed -n 's|^ *// refused: ||p' "$here/refused.cc")
while read -r sentence; do
  want=$(grep -cxF -- "$sentence" <<<"$wanted")
  # Both compilers print the sentence in the line of the error, and perhaps in the lines that they
  # quote.
  found=$(grep -F -- "$sentence" <<<"$said" | grep -cE 'error:|throw')
  [ "$found" -ge "$want" ] || complain "said $found times, wanted $want: $sentence"
done <<<"$wanted"

mistakes=$(grep -c . <<<"$wanted")
errors=$(grep -c 'error:' <<<"$said")
lines=$(grep -c . <<<"$said")
# A mistake in a table is reported twice: for the call, and for the variable that it should have
# made.
[ "$errors" -le $((2 * mistakes)) ] || complain "$errors errors for $mistakes mistakes"
[ "$lines" -le $((20 * mistakes)) ] || complain "$lines lines for $mistakes mistakes"
[ "$failures" -eq 0 ] || { echo "$said" | cut -c1-200; exit 1; }
echo "refused_test: $mistakes mistakes, $errors errors, $lines lines"
