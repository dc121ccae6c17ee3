// SPDX-License-Identifier: Apache-2.0
//
// Where in a store's directory the step log lies, for tests that damage it or look at its bytes.

#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "log/unit_frame.h"
#include "support/crash_env.h"

namespace pv2::testing {

/// Where the frames of the segment that `bytes` begin with end, after each other.
inline std::vector<std::size_t> frame_ends(std::string_view bytes) {
  std::vector<std::size_t> ends;
  const auto first = read_frame(bytes, 0);
  auto frame = first;
  for (std::size_t at = 0; frame && frame->segment == first->segment;
       frame = read_frame(bytes, at)) {
    at += frame->bytes();
    ends.push_back(at);
  }
  return ends;
}

/// The files of the step log in the order of their segments; without those that have none.
inline std::vector<std::string> step_files(const CrashEnv& env) {
  std::map<SegmentNumber, std::string> in_order;
  for (const std::string& file : env.files()) {
    if (file.find("/PV2-STEPS-") == std::string::npos) continue;
    const std::string bytes = env.contents(file);
    const auto first = read_frame(bytes, 0);
    if (first) in_order[first->segment] = file;
  }
  std::vector<std::string> files;
  for (auto& [number, file] : in_order) files.push_back(std::move(file));
  return files;
}

/// "PV2-STEPS-1" of "store/PV2-STEPS-1".
inline std::string name_in_store(const std::string& file) {
  return file.substr(file.rfind('/') + 1);
}

}  // namespace pv2::testing
