// SPDX-License-Identifier: Apache-2.0
//
// AbortOptions: what a caller says about an abort.

#pragma once

#include <string>

namespace pv2 {

/// What goes with an abort.
struct AbortOptions {
  /// Why, for the result and the log. Cut at 1 KiB.
  std::string reason{};
  /// Who asks; named in the result. Cut at 256 bytes.
  std::string who{};
};

}  // namespace pv2
