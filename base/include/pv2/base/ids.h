// SPDX-License-Identifier: Apache-2.0
//
// The identities that travel through every layer, each a type of its own so that swapping two of
// them is a compile error. They are plain values: no allocation, no meaning beyond equality and
// order.

#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace pv2 {

/// Names one procedure for ever: issued in increasing order, never reused, not even after a
/// restart. 0 means "no procedure".
struct ProcedureId {
  std::uint64_t value = 0;

  constexpr explicit operator bool() const noexcept { return value != 0; }
  friend constexpr auto operator<=>(ProcedureId, ProcedureId) noexcept = default;
};

/// The position of a committed batch in its store's history; later batches have larger numbers.
/// 0 means "not committed".
struct CommitSequence {
  std::uint64_t value = 0;

  constexpr explicit operator bool() const noexcept { return value != 0; }
  friend constexpr auto operator<=>(CommitSequence, CommitSequence) noexcept = default;
};

/// Names one submission, chosen by the client once per logical operation, outside its retry loop:
/// all retries carry the same nonce and get the same procedure. `value` 0 means "no nonce"; `group`
/// keeps clients apart (a client picks a random group once and a random non-zero value per
/// operation).
struct Nonce {
  std::uint64_t group = 0;
  std::uint64_t value = 0;

  constexpr explicit operator bool() const noexcept { return value != 0; }
  friend constexpr auto operator<=>(const Nonce&, const Nonce&) noexcept = default;
};

}  // namespace pv2

template <>
struct std::hash<pv2::ProcedureId> {
  std::size_t operator()(pv2::ProcedureId id) const noexcept {
    // Ids are dense; the multiplication spreads them over the high bits that open addressing uses.
    return static_cast<std::size_t>(id.value * 0x9E3779B97F4A7C15ULL);
  }
};

/// Clients choose nonces, so it depends on the process: see keyed_hash.h.
template <>
struct std::hash<pv2::Nonce> {
  std::size_t operator()(const pv2::Nonce& nonce) const noexcept;
};
