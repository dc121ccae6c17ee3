// SPDX-License-Identifier: Apache-2.0
//
// What every benchmark program accepts on its command line. A wrong argument prints the usage and
// ends the program with 2.

#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

namespace pv2::bench {

/// How long and how often to measure. A value.
struct Options {
  bool quick = false;
  /// Rounds; figures are medians over them. 5: two may be spoilt by other programs and three
  /// remain.
  unsigned runs = 5;
  /// Before a window opens: LevelDB's first tables are written and the queues are full by then.
  std::chrono::milliseconds warm_up{300};
  std::chrono::milliseconds window{1000};
  /// The raw sync beside each window: 300 ms are some 2000 syncs.
  std::chrono::milliseconds raw_window{300};
  /// Where the temporary folder is made. It has to be on a disk: see WorkFolder.
  std::string data = "/var/tmp";
};

/// Looks at an argument `--name` or `--name=value` that is not everybody's; false: unknown.
using OwnOption = std::function<bool(std::string_view name, std::string_view value)>;

/// Understands --quick, --runs=N, --window=MS and --data=DIR, asks `own` about the rest. `usage` is
/// printed, with exit code 2, when an argument means nothing to either, and with 0 for --help.
Options parse_options(int argc, char** argv, std::string_view usage, const OwnOption& own = {});

/// A positive number out of an option's value; 0 when it is none.
unsigned long number_in(std::string_view value);

}  // namespace pv2::bench
