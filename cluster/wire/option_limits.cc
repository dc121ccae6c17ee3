// SPDX-License-Identifier: Apache-2.0
//
// Each option is one line of a list; the first one that is wrong is named.

#include "wire/option_limits.h"

#include <fmt/format.h>

#include <chrono>
#include <initializer_list>
#include <string>
#include <string_view>

namespace pv2::cluster {
namespace {

struct Time {
  std::string_view name;
  Duration value;
  Duration min = kOptionTimeMin;
};
struct Count {
  std::string_view name;
  std::uint64_t value = 0;
  std::uint64_t max = 0;
};

Status check_times(std::initializer_list<Time> times) {
  for (const Time& time : times) {
    if (time.value >= time.min && time.value <= kOptionTimeMax) continue;
    return {StatusCode::kInvalidArgument,
            fmt::format("{} is {} microseconds; it may be {} to a year", time.name,
                        std::chrono::duration_cast<std::chrono::microseconds>(time.value).count(),
                        time.min == kOptionTimeMin ? "a millisecond" : "0")};
  }
  return {};
}

Status check_counts(std::initializer_list<Count> counts) {
  for (const Count& count : counts) {
    if (count.value >= 1 && count.value <= count.max) continue;
    return {StatusCode::kInvalidArgument,
            fmt::format("{} is {}; it may be 1 to {}", count.name, count.value, count.max)};
  }
  return {};
}

Status check_root(const std::string& root) {
  if (!root.empty()) return {};
  return {StatusCode::kInvalidArgument, "root is empty; name the directory of the cluster"};
}

}  // namespace

Status check_options(const MasterOptions& options) {
  if (Status bad = check_root(options.root); !bad.ok()) return bad;
  return check_times({{"lease", options.lease},
                      {"clean_up_every", options.clean_up_every},
                      {"old_logs_kept", options.old_logs_kept, {}},
                      {"archive_kept", options.archive_kept, {}}});
}

Status check_options(const RegionServerOptions& options) {
  if (Status bad = check_root(options.root); !bad.ok()) return bad;
  Status bad = check_times({{"heartbeat_every", options.heartbeat_every},
                            {"silence_max", options.silence_max},
                            {"stop_max", options.stop_max},
                            {"report_pause_min", options.report_pause_min},
                            {"report_pause_max", options.report_pause_max},
                            {"effect_retention", options.effect_retention},
                            {"nonce_retention", options.nonce_retention}});
  if (!bad.ok()) return bad;
  return check_counts({{"memory_max", options.memory_max, kMemoryMax},
                       {"nonce_bytes_max", options.nonce_bytes_max, kMemoryMax},
                       {"log_bytes_max", options.log_bytes_max, kMemoryMax},
                       {"logs_max", options.logs_max, kMemoryMax}});
}

}  // namespace pv2::cluster
