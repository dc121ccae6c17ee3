#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs what is missing, builds the demos and runs them: first the engine that is killed, then
# the counter service, whose network loses things. With arguments only the first one runs, and gets
# them: ./demo.sh --help
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)

"$root/cmake/install_packages.sh"
"$root/cmake/build_preset.sh" release pv2_demo counter_service
examples=$root/build/release/examples
if (($# > 0)); then exec "$examples/pv2_demo" "$@"; fi
"$examples/pv2_demo"
echo
exec "$examples/counter_service" demo
