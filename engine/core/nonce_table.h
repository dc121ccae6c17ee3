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
// When a bucket of the table is split, each of its nonces is read through the pointer, under the
// state mutex.

#pragma once

#include <pv2/base/assert.h>
#include <pv2/base/extendible_set.h>
#include <pv2/base/ids.h>

#include <boost/unordered/unordered_flat_set.hpp>
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
  struct Entry {
    const NonceUse* use;
    ProcedureId id;
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(const Nonce& nonce) const noexcept { return std::hash<Nonce>()(nonce); }
    std::size_t operator()(const Entry& entry) const noexcept { return (*this)(entry.use->nonce); }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const Entry& one, const Entry& other) const noexcept {
      return one.use->nonce == other.use->nonce;
    }
    bool operator()(const Nonce& nonce, const Entry& entry) const noexcept {
      return nonce == entry.use->nonce;
    }
    bool operator()(const Entry& entry, const Nonce& nonce) const noexcept {
      return nonce == entry.use->nonce;
    }
  };

 public:
  /// `use` is that of `id`. False: the table has another use of that nonce, which stays.
  bool add(ProcedureId id, const NonceUse& use) {
    PV2_ASSERT(id && use.nonce, "a nonce that is used names a procedure");
    return entries_.insert({&use, id});
  }
  /// False: `nonce` is none, or the table does not have it as that of `id`.
  bool remove(const Nonce& nonce, ProcedureId id) {
    if (!nonce) return false;
    const Entry* const entry = entries_.find(nonce);
    return entry != nullptr && entry->id == id && entries_.erase(nonce);
  }
  void clear() { entries_.clear(); }

  [[nodiscard]] std::optional<KnownNonce> find(const Nonce& nonce) const {
    const Entry* const entry = entries_.find(nonce);
    if (entry == nullptr) return std::nullopt;
    return KnownNonce{entry->id, entry->use->fingerprint};
  }
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  /// Calls `look` with the id and the use of each nonce.
  template <class Look>
  void for_each(Look look) const {
    entries_.for_each([&](const Entry& entry) { look(entry.id, *entry.use); });
  }

 private:
  ExtendibleSet<boost::unordered_flat_set<Entry, Hash, Equal>> entries_;
};

}  // namespace pv2
