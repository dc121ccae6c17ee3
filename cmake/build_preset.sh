#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Configures one preset of CMakePresets.json and builds the targets named after it:
#
#     cmake/build_preset.sh release all check_headers
#
# Installs nothing. A build folder that was copied here with the checkout is configured from scratch
# instead of refused.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
preset=$1
shift

fresh=()
cache=build/$preset/CMakeCache.txt
if [[ -f $cache ]] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$(pwd -P)" "$cache"; then
  fresh=(--fresh)
fi
echo "== configuring $preset"
cmake --preset "$preset" "${fresh[@]}" --log-level=WARNING
echo "== building $preset: $*"
cmake --build --preset "$preset" --parallel "$(nproc)" --target "$@"
