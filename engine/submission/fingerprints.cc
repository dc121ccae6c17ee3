// SPDX-License-Identifier: Apache-2.0
//
// Two forms of one hash. The joined form separates type, owner and arguments by zero bytes, which
// is ambiguous if the type or the owner contains a zero byte. Only then do the two forms differ:
// the exact form hashes two zero bytes, the lengths of type and owner, and then the three strings.
// No type has an empty name, so nothing that is joined begins with a zero byte.

#include "submission/fingerprints.h"

#include <pv2/base/hash128.h>
#include <pv2/base/wire.h>

#include <string_view>

namespace pv2 {

Fingerprints fingerprints_of(const Identity& identity, std::string& scratch) {
  using Form = Fingerprint::Form;
  const std::string_view type = identity.name_of_type();
  const std::string_view owner = identity.owner();
  const std::string_view arguments = identity.arguments.view();
  scratch.assign(type).append(1, '\0').append(owner).append(1, '\0').append(arguments);
  Hash128 hash = hash128(scratch);
  const Fingerprint joined{hash.first, hash.second, Form::kJoined};
  if (type.find('\0') != type.npos || owner.find('\0') != owner.npos) {
    scratch.assign(2, '\0');
    append_fixed64(scratch, type.size());
    append_fixed64(scratch, owner.size());
    scratch.append(type).append(owner).append(arguments);
    hash = hash128(scratch);
  }
  return {{hash.first, hash.second, Form::kExact}, joined};
}

}  // namespace pv2
