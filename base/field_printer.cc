// SPDX-License-Identifier: Apache-2.0
//
// How people read times and durations.

#include "pv2/base/field_printer.h"

#include <cstdio>

namespace pv2::internal {

std::string format_time(WallTime time) {
  using namespace std::chrono;
  // ISO 8601 writes these years with four digits. A damaged time and the time that stands for
  // "never" lie outside and are printed as a distance from 1970.
  constexpr WallTime kFirst = sys_days(year(0) / January / 1);
  constexpr WallTime kEnd = sys_days(year(10000) / January / 1);
  if (time < kFirst || time >= kEnd) {
    return format_duration(std::to_string(time.time_since_epoch().count()), 1, 1'000'000) +
           " since 1970";
  }
  const auto midnight = floor<days>(time);
  const year_month_day date{midnight};
  const hh_mm_ss clock{time - midnight};
  char text[64];
  std::snprintf(
      text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02d.%06dZ", static_cast<int>(date.year()),
      static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
      static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
      static_cast<int>(clock.seconds().count()), static_cast<int>(clock.subseconds().count()));
  return text;
}

std::string format_duration(std::string count, std::intmax_t num, std::intmax_t den) {
  struct Unit {
    std::intmax_t num, den;
    std::string_view suffix;
  };
  constexpr Unit kUnits[] = {
      {1, 1'000'000'000, "ns"}, {1, 1'000'000, "us"}, {1, 1000, "ms"}, {1, 1, "s"},
      {60, 1, "min"},           {3600, 1, "h"},       {86400, 1, "d"}};
  for (const Unit& unit : kUnits) {
    if (unit.num == num && unit.den == den) return count.append(unit.suffix);
  }
  return count + "[" + std::to_string(num) + "/" + std::to_string(den) + "]s";
}

}  // namespace pv2::internal
