#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs what is missing, builds everything, compiles each public header alone, and runs all
# tests. The last lines are ctest's summary and the exit status is its verdict. Arguments go to
# ctest: ./test.sh -R store
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)

"$root/cmake/install_packages.sh"
"$root/cmake/build_preset.sh" release all check_headers
echo "== testing release"
cd "$root"
exec ctest --preset release --output-on-failure -j2 "$@"
