// SPDX-License-Identifier: Apache-2.0
//
// The texts for tables and their states. Nothing here can fail.

#include "pv2/procedures/table.h"

#include <pv2/base/resource.h>

namespace pv2 {

std::string to_string(const TableName& name) { return table_key_name(name.name_space, name.table); }

std::string_view to_string(TableState state) noexcept {
  switch (state) {
    case TableState::kEnabling:
      return "ENABLING";
    case TableState::kEnabled:
      return "ENABLED";
    case TableState::kDisabling:
      return "DISABLING";
    case TableState::kDisabled:
      return "DISABLED";
  }
  return "UNKNOWN";
}

}  // namespace pv2
