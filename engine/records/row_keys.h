// SPDX-License-Identifier: Apache-2.0
//
// The keys of the engine's rows (docs/store-format.md). Numbers in a key are big-endian, so rows
// sort by number. Parsing trusts nothing: a malformed key gives nullopt.
//
//     space        key                                        row
//     kProcedure   id, kind                                   header or state of a live procedure
//     kProcedure   id, kind, number                           message or order
//     kResult      id                                         root that has ended
//     kNonce       group, value                               procedure of a nonce
//     kEngine      "next_id"                                  watermark
//     kEngine      "kept:", age, id                           date of a result
//     kEngine      "limit:", class, name                      limit of a key
//     kEngine      "schema:", type                            fields of a type (schema_rows.h)

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/ids.h>
#include <pv2/base/resource.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pv2 {

/// No counter of ids ever gets beyond this. An id above it is damage.
inline constexpr std::uint64_t kIdsMax = UINT64_MAX / 2;

/// The ninth byte of a key in Space::kProcedure. Persisted.
enum class RowKind : char { kHeader = 1, kState = 2, kInbox = 3, kAudit = 4 };

/// A key of a fixed length, which needs no memory of its own.
template <std::size_t kSize>
struct FixedKey {
  std::array<char, kSize> bytes;
  operator std::string_view() const noexcept { return {bytes.data(), kSize}; }
};

/// The key of a header or a state: 8 bytes id, then the kind. With kInbox or kAudit it is the
/// prefix of the keys of all messages or orders of `id`.
[[nodiscard]] FixedKey<9> procedure_key(ProcedureId id, RowKind kind) noexcept;
/// The key of a message: 8 bytes id, the kind, 8 bytes number. So the messages of a procedure
/// follow its state, in the order of their numbers.
[[nodiscard]] std::string inbox_key(ProcedureId id, std::uint64_t number);
/// The key of an order: like that of a message, with kind kAudit.
[[nodiscard]] std::string audit_key(ProcedureId id, std::uint64_t number);

/// What a key in Space::kProcedure says.
struct ProcedureKey {
  ProcedureId id;
  RowKind kind;
  std::uint64_t number = 0;  ///< Of a message or an order; otherwise 0.
};
[[nodiscard]] std::optional<ProcedureKey> parse_procedure_key(std::string_view key);
/// The id at the beginning of `key`, even if the rest of the key is malformed; 0 if the key is
/// shorter than an id. All rows of one procedure begin with its id, so they are neighbours.
[[nodiscard]] ProcedureId id_in_key(std::string_view key) noexcept;

/// The key of the row of a root that has ended: 8 bytes id.
[[nodiscard]] FixedKey<8> result_key(ProcedureId id) noexcept;

/// The key of the row of a nonce: 8 bytes group, 8 bytes value.
[[nodiscard]] FixedKey<16> nonce_key(const Nonce& nonce) noexcept;
[[nodiscard]] std::optional<Nonce> parse_nonce_key(std::string_view key);

/// The key of the watermark.
inline constexpr std::string_view kWatermarkKey = "next_id";

/// The key of the date of a result: this prefix, then 8 bytes age of the store when the root ended,
/// then 8 bytes id. So dates sort in the order in which results expire.
inline constexpr std::string_view kKeptKeyPrefix = "kept:";
using KeptKeyBytes = FixedKey<kKeptKeyPrefix.size() + 16>;
[[nodiscard]] KeptKeyBytes kept_key(Duration age, ProcedureId id) noexcept;
/// What such a key says. The age is not checked; a damaged one may be negative.
struct KeptKey {
  Duration age{};
  ProcedureId id;
};
[[nodiscard]] std::optional<KeptKey> parse_kept_key(std::string_view key);

/// The key of a limit: this prefix, then the class as one byte, then the name.
inline constexpr std::string_view kLimitKeyPrefix = "limit:";
[[nodiscard]] std::string limit_key(const ResourceKey& key);
[[nodiscard]] std::optional<ResourceKey> parse_limit_key(std::string_view key);

}  // namespace pv2
