// SPDX-License-Identifier: Apache-2.0
//
// NamedValues: reads numbers that name values of an enumeration. It remembers a number that the
// enumeration's type cannot hold: without its upper bits such a number would name another value,
// and the record would be read as something that it does not say.

#pragma once

#include <pv2/base/status.h>
#include <pv2/base/wire.h>

#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

namespace pv2 {

/// For one record. Owned by one thread.
class NamedValues {
 public:
  /// Reads the number at which `reader` stands. If it is too large, `value` stays as it is.
  template <class Enum>
  void read(WireReader& reader, Enum& value) {
    const std::uint64_t number = reader.varint();
    if (number > std::numeric_limits<std::underlying_type_t<Enum>>::max()) {
      too_large_ = number;
      return;
    }
    value = static_cast<Enum>(number);
  }
  /// kCorruption if one of the numbers was too large; `what` names the record.
  [[nodiscard]] Status status(std::string_view what) const;

 private:
  std::uint64_t too_large_ = 0;
};

}  // namespace pv2
