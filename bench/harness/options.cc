// SPDX-License-Identifier: Apache-2.0
//
// Reads the arguments twice, because --quick sets defaults that the others may change.

#include "harness/options.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>

namespace pv2::bench {
namespace {

[[noreturn]] void end_with_usage(std::string_view usage, int code) {
  fmt::print(code == 0 ? stdout : stderr,
             "{}\nAll of them: --quick, --runs=N (odd; a median is taken), --window=MS, "
             "--data=DIR (a folder on a disk), --callbacks=pool|engine (the thread that runs those "
             "of the load)\n",
             usage);
  std::exit(code);
}

void be_quick(Options& options) {
  options.quick = true;
  options.runs = 3;
  options.warm_up = std::chrono::milliseconds(200);
  options.window = std::chrono::milliseconds(400);
  options.raw_window = std::chrono::milliseconds(150);
}

}  // namespace

unsigned long number_in(std::string_view value) {
  unsigned long number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  return error == std::errc() && end == value.data() + value.size() ? number : 0;
}

Options parse_options(int argc, char** argv, std::string_view usage, const OwnOption& own) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--quick") be_quick(options);
  }
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const std::size_t equals = argument.find('=');
    const std::string_view name = argument.substr(0, equals);
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view() : argument.substr(equals + 1);
    if (name == "--help") end_with_usage(usage, 0);
    if (name == "--quick") continue;
    if (name == "--runs" && number_in(value) != 0) {
      options.runs = static_cast<unsigned>(number_in(value));
    } else if (name == "--window" && number_in(value) != 0) {
      options.window = std::chrono::milliseconds(number_in(value));
    } else if (name == "--data" && !value.empty()) {
      options.data = value;
    } else if (name == "--callbacks" && (value == "pool" || value == "engine")) {
      options.callbacks = value == "pool" ? CallbackThread::kPool : CallbackThread::kEngine;
    } else if (!own || !own(name, value)) {
      fmt::print(stderr, "{}: what is '{}'?\n", argv[0], argument);
      end_with_usage(usage, 2);
    }
  }
  return options;
}

}  // namespace pv2::bench
