#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks the small promises of the style, so that reviews can talk about ideas. It reads text line
# by line and understands no C++: the build checks what needs a compiler, clang-tidy what needs a
# parser. Prints each breach as file:line: what is wrong, and fails if there was one. Needs only
# bash, find, grep and awk.
#
#   tidy_test.sh <root of the tree>      check that tree
#   tidy_test.sh --self-test             check that every rule below still finds its breach
set -euo pipefail

layers=(base store idempotency rpc scheduler engine remote procedures cluster)
products=(testing server tools examples bench tests)
# The includes that a layer may use in addition to its own.
declare -A below=([base]='' [store]='base' [idempotency]='base|store' [rpc]='base'
  [scheduler]='base' [engine]='base|store|scheduler'
  [remote]='base|store|scheduler|engine|idempotency|rpc'
  [procedures]='base|store|scheduler|engine'
  [cluster]='base|store|scheduler|engine|idempotency|rpc|remote|procedures')

# The rooms of engine/, and the rooms that each may see besides itself: those that the drawing in
# engine/README.md has below it.
rooms=(model records core submission tree recovery steps orders watch executor)
declare -A below_room=([model]='' [records]='model' [core]='model|records'
  [submission]='model|records|core' [tree]='model|records|core|submission'
  [recovery]='model|records|core|submission|tree' [steps]='model|records|core|submission|tree'
  [orders]='model|records|core|submission|tree|steps'
  [watch]='model|records|core|submission|tree|steps'
  [executor]='model|records|core|submission|tree|recovery|steps|orders|watch')

# Each rule prints breaches as file:line: text. `code` is the list of C++ files, `scripts` that of
# CMake and shell files.
no_leftovers() {
  grep -nHE '\b(TO''DO|FIX''ME|XX''X|HA''CK)\b' "${code[@]}" "${scripts[@]}" | say 'leftover note'
}
no_tabs() { grep -nHP '\t' "${code[@]}" | say 'tab'; }
no_trailing_blanks() {
  grep -nHE ' +$' "${code[@]}" "${scripts[@]}" | say 'blank at the end of the line'
}
no_direct_catch() {
  grep -nHE '#include <catch2/' "${code[@]}" | grep -v 'tests/support/catch\.h:' |
    say 'include "support/catch.h" instead'
}
no_sleeps_in_tests() {
  grep -nHE '\b(sleep_for|sleep_until|usleep|nanosleep)\b' "${code[@]}" | grep -E '^tests/' |
    say 'sleep in a test'
}
# CTest takes a list of names, which ends at a semicolon: such a test would not be run.
no_semicolons_in_titles() {
  awk '
    FNR == 1 { title = 0 }
    /TEST_CASE\(/ { title = 1 }
    title && /"[^"]*;[^"]*"/ { print FILENAME ":" FNR ": a semicolon in the title of a test" }
    /\{$/ { title = 0 }
  ' "${code[@]}"
}
no_long_lines() {
  # Bytes that continue a UTF-8 character are not columns.
  LC_ALL=C awk '
    { line = $0; gsub(/[\200-\277]/, "", line) }
    length(line) > 100 { print FILENAME ":" FNR ": over 100 columns" }
  ' "${code[@]}" "${scripts[@]}"
}
# Paragraphs of documents. Not limited are tables, code (also if indented by four), and lines
# without a blank to break at.
no_long_paragraphs() {
  LC_ALL=C awk '
    FNR == 1 { fenced = 0 }
    /^ *```/ { fenced = !fenced }
    fenced || /^ *\|/ || /^    / || /^ *([-*]|[0-9]+\.)? *[^ ]+$/ { next }
    { line = $0; gsub(/[\200-\277]/, "", line) }
    length(line) > 100 { print FILENAME ":" FNR ": over 100 columns" }
  ' "${documents[@]}"
}
header_paragraph() {
  LC_ALL=C awk '
    FNR == 1 && $0 != "// SPDX-License-Identifier: Apache-2.0" { print FILENAME ":1: no SPDX line" }
    FNR == 1 { words = 0; open = 1; next }
    open && /^\/\// { words += NF - 1; if (words >= 6) { open = 0; told[FILENAME] = 1 } next }
    open { open = 0 }
    END {
      for (i = 1; i < ARGC; i++)
        if (!(ARGV[i] in told)) print ARGV[i] ":2: no paragraph that says what this file is"
    }
  ' "${code[@]}"
}
pragma_once() {
  local file
  for file in "${code[@]}"; do
    if [[ $file == *.h ]] && ! grep -q '^#pragma once$' "$file"; then
      echo "$file:1: no #pragma once"
    fi
  done
}
includes_point_down() {
  local layer
  for layer in "${layers[@]}"; do
    grep -rnHE --include='*.h' --include='*.cc' "#include [<\"]pv2/[a-z_]+/" "$layer" 2>/dev/null |
      grep -vE "#include [<\"]pv2/($layer|${below[$layer]:-$layer})/" |
        say "$layer may not see this layer"
  done
}
rooms_point_down() {
  local room seen
  for room in "${rooms[@]}"; do
    seen="pv2|$room${below_room[$room]:+|${below_room[$room]}}"
    grep -rnHE --include='*.h' --include='*.cc' '#include "[a-z_0-9]+[./]' "engine/$room" \
      2>/dev/null | grep -vE "#include \"($seen)/" | say "the room $room may not see this file"
  done
  find engine -maxdepth 1 \( -name '*.h' -o -name '*.cc' \) -printf '%p:1: is in no room\n' \
    2>/dev/null
}
rooms_have_a_map() {
  local room
  for room in "${rooms[@]}"; do
    if [[ -d engine/$room && ! -f engine/$room/README.md ]]; then
      echo "engine/$room:1: no README.md"
    fi
  done
}
# How many headers the longest chain of includes has, counting the header itself. An include is
# found by the end of its path: <pv2/base/ids.h> is base/include/pv2/base/ids.h.
includes_are_shallow() {
  find "${layers[@]}" testing -name '*.h' 2>/dev/null | sort |
    xargs -r grep -HE '^#include [<"]' /dev/null | awk -v most=10 '
      function depth(file, i, n, d, deepest, parts) {
        if (file in known) return known[file]
        known[file] = 1  # ends a cycle
        n = split(includes[file], parts, " ")
        for (i = 1; i <= n; ++i) {
          if (parts[i] in path && (d = depth(path[parts[i]])) > deepest) deepest = d
        }
        return known[file] = deepest + 1
      }
      {
        file = $0; sub(/:#include.*/, "", file)
        name = $0; sub(/^[^<"]*[<"]/, "", name); sub(/[>"].*/, "", name)
        includes[file] = includes[file] " " name
        short = file
        if (!sub(/^.*\/include\//, "", short)) sub(/^[a-z]*\//, "", short)
        path[short] = file
      }
      END {
        for (file in includes) {
          if (depth(file) > most) {
            print file ":1: its includes are " depth(file) " headers deep, and " most " are allowed"
          }
        }
      }'
}
public_headers_are_clean() {
  local layer
  for layer in base store idempotency rpc scheduler engine remote cluster; do
    grep -rnHE --include='*.h' '#include [<"](boost|leveldb|fmt|google)/' \
      "$layer/include" 2>/dev/null |
      say 'a dependency shows in a public header'
  done
}
folders_have_a_map() {
  local folder
  for folder in "${layers[@]}" "${products[@]}" docs cmake; do
    if [[ -d $folder && ! -f $folder/README.md ]]; then echo "$folder:1: no README.md"; fi
  done
}
rules=(no_leftovers no_tabs no_trailing_blanks no_direct_catch no_sleeps_in_tests
  no_semicolons_in_titles no_long_lines no_long_paragraphs header_paragraph pragma_once
  includes_point_down rooms_point_down rooms_have_a_map includes_are_shallow
  public_headers_are_clean folders_have_a_map)

# Shortens grep's file:line:text to file:line, the reason and the text.
say() {
  awk -F: -v why="$1" '
    { text = $0; sub(/^[^:]*:[^:]*:/, "", text); print $1 ":" $2 ": " why ": " text }
  '
}

list_files() {
  mapfile -t code < <(find "${layers[@]}" "${products[@]}" \( -name '*.h' -o -name '*.cc' \) \
    2>/dev/null | sort)
  mapfile -t scripts < <(find "${layers[@]}" "${products[@]}" cmake CMakeLists.txt ./*.sh .ci/run \
    -type f \( -name CMakeLists.txt -o -name '*.cmake' -o -name '*.sh' -o -path .ci/run \) \
    2>/dev/null | sort)
  mapfile -t documents < <(find . -name build -prune -o -name '*.md' -print |
    sed 's,^\./,,' | sort)
  # An empty list would make grep and awk read the terminal.
  code+=(/dev/null)
  scripts+=(/dev/null)
  documents+=(/dev/null)
}

self_test() {
  local failed=0 rule
  tree=$(mktemp -d)  # Not local: the trap runs after this function.
  trap 'rm -rf "$tree"' EXIT
  cd "$tree"
  mkdir -p base/include/pv2/base engine/model engine/orders tests
  printf '#include "recovery/recovery.h"\n#include "tree/flight.h"\n' >engine/orders/bad.h
  printf '#include "tree/flight.h"\n' >engine/model/bad.h
  for rule in {1..11}; do
    printf '#include "model/deep_%d.h"\n' "$((rule - 1))" >"engine/model/deep_$rule.h"
  done
  printf '#include <boost/asio.hpp>\n#include <pv2/engine/x.h>\n' >base/include/pv2/base/bad.h
  {
    printf '// TO''DO\n\tint x; \n#include <catch2/catch.hpp>\nvoid f() { sleep_for(1s); }\n'
    printf 'TEST_CASE(\n    "one; two") {\n'
    printf '//%0120d\n' 0
  } >tests/bad_test.cc
  printf 'wide %0120d\n' 0 >tests/bad.md
  list_files
  for rule in "${rules[@]}"; do
    if [[ -z $("$rule" || true) ]]; then
      echo "self-test: $rule did not find its breach"
      failed=1
    fi
  done
  if [[ $(rooms_point_down | grep -c '^engine/orders/') != 1 ]]; then
    echo "self-test: rooms that stand side by side may see each other"
    failed=1
  fi
  return "$failed"
}

if [[ ${1:-} == --self-test ]]; then
  self_test
  exit
fi
cd "$1"
list_files
breaches=$(for rule in "${rules[@]}"; do "$rule" || true; done | grep -v '^/dev/null' || true)
if [[ -n $breaches ]]; then
  printf '%s\n' "$breaches"
  printf '%d breaches of the style\n' "$(wc -l <<<"$breaches")"
  exit 1
fi
printf 'tidy: %d files keep the small promises\n' "$((${#code[@]} + ${#scripts[@]} - 2))"
