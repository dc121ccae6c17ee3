#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs what is missing, builds the demo and runs it. Arguments go to the demo: ./demo.sh --help
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)

"$root/cmake/install_packages.sh"
"$root/cmake/build_preset.sh" release pv2_demo
exec "$root/build/release/examples/pv2_demo" "$@"
