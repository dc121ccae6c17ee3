// SPDX-License-Identifier: Apache-2.0
//
// What every benchmark program accepts on its command line. A wrong argument prints the usage and
// ends the program with 2.

#pragma once

#include <pv2/engine/async_executor.h>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

namespace pv2::bench {

/// How long and how often to measure. A value.
struct Options {
  bool quick = false;
  /// How many rounds; figures are medians over them. 5: other programs may spoil two, and three
  /// remain.
  unsigned runs = 5;
  /// The time before a window opens: by then LevelDB's first tables are written and the queues are
  /// full.
  std::chrono::milliseconds warm_up{300};
  std::chrono::milliseconds window{1000};
  /// The duration of the raw sync next to each window: 300 ms are some 2000 syncs.
  std::chrono::milliseconds raw_window{300};
  /// Where the temporary folder is made. It has to be on a disk: see WorkFolder.
  std::string data = "/var/tmp";
  /// Which thread runs the callbacks of loads that have no thread of their own.
  CallbackThread callbacks = CallbackThread::kEngine;
};

/// Looks at an argument `--name` or `--name=value` that is not common to all; false: unknown.
using OwnOption = std::function<bool(std::string_view name, std::string_view value)>;

/// Understands --quick, --runs=N, --window=MS, --data=DIR and --callbacks=pool|engine, and asks
/// `own` about the rest. Prints `usage` and exits with 2 for an argument that both do not know, and
/// with 0 for --help.
Options parse_options(int argc, char** argv, std::string_view usage, const OwnOption& own = {});

/// The positive number in an option's value; 0 when there is none.
unsigned long number_in(std::string_view value);

}  // namespace pv2::bench
