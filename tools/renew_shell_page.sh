#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Writes the session on docs/shell.md anew, as the shell prints it now. Look at the difference
# before you commit it. To add a statement, add a line "pv2> statement" before "pv2> exit" first.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cmake/build_preset.sh release tools_tests
PV2_RENEW_SHELL_PAGE=1 build/release/tests/tools_tests \
  "the session on the page of the shell is what the shell prints"
git --no-pager diff --stat -- docs/shell.md
