// SPDX-License-Identifier: Apache-2.0
//
// NonceTable: the nonces in memory, each with the procedure for which it was used. It points to the
// uses of the nonces and owns none, so that each is in memory once. A root has the use of its nonce
// until it ends (Identity::nonce_use), and its result has it then (Completed::nonce_use).
//
//     in the table        from when a submission is found to be new, or its root is loaded, until
//                         the result leaves memory: it was acknowledged, only the store keeps it
//                         from now on, or nobody keeps it. Or until the first record of the root
//                         fails or is withdrawn.
//     not in the table    before and after that; and the nonce of a second root to which a damaged
//                         store gives the same one.
//
// A use that is in the table does not change and outlives its entry: whoever destroys its owner
// removes the entry before that, in the same section. So a worker may read the nonce of the root
// that it runs without the state mutex, like the rest of its identity.
//
// When the table grows it reads each nonce through its pointer, under the state mutex. On the way
// to a million nonces the slowest add() takes 131 to 168 ms; a table that has the nonces by value
// needs 78 to 94 ms. The pointers take half the memory of that, for as long as a root lives.

#pragma once

#include <pv2/base/assert.h>
#include <pv2/base/ids.h>

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <functional>
#include <optional>

#include "model/identity.h"

namespace pv2 {

/// What is known of a nonce.
struct KnownNonce {
  ProcedureId id;
  Fingerprint fingerprint;
};

/// Guarded by the engine's state mutex.
class NonceTable {
  // By the nonce to which the key points.
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(const Nonce& nonce) const noexcept { return std::hash<Nonce>()(nonce); }
    std::size_t operator()(const NonceUse* use) const noexcept { return (*this)(use->nonce); }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const NonceUse* one, const NonceUse* other) const noexcept {
      return one->nonce == other->nonce;
    }
    bool operator()(const Nonce& nonce, const NonceUse* use) const noexcept {
      return nonce == use->nonce;
    }
  };
  using Map = boost::unordered_flat_map<const NonceUse*, ProcedureId, Hash, Equal>;

 public:
  /// `use` is that of `id`. False: the table has another use of that nonce, which stays.
  bool add(ProcedureId id, const NonceUse& use) {
    PV2_ASSERT(id && use.nonce, "a nonce that is used names a procedure");
    return map_.emplace(&use, id).second;
  }
  /// False: `nonce` is none, or the table does not have it as that of `id`.
  bool remove(const Nonce& nonce, ProcedureId id) {
    if (!nonce) return false;
    const auto at = map_.find(nonce);
    if (at == map_.end() || at->second != id) return false;
    map_.erase(at);
    return true;
  }
  void clear() { map_.clear(); }

  [[nodiscard]] std::optional<KnownNonce> find(const Nonce& nonce) const {
    const auto at = map_.find(nonce);
    if (at == map_.end()) return std::nullopt;
    return KnownNonce{at->second, at->first->fingerprint};
  }
  [[nodiscard]] std::size_t size() const noexcept { return map_.size(); }
  [[nodiscard]] Map::const_iterator begin() const { return map_.begin(); }
  [[nodiscard]] Map::const_iterator end() const { return map_.end(); }

 private:
  Map map_;
};

}  // namespace pv2
