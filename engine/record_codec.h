// SPDX-License-Identifier: Apache-2.0
//
// The rows of a procedure: a header, written once, and a state, written by every step. Each is two
// frames: the engine's part, then the user's fields. So the identity and the locks of a procedure
// can be read even when its user part cannot. The record that ends a root makes one row of both, in
// Space::kResult, so that a start reads what is live and nothing else. The byte format is
// docs/store-format.md; protobuf messages inside.

#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "engine_age.h"
#include "execution.h"
#include "step_commit.h"

namespace pv2 {

/// The last byte of a row's key in Space::kProcedure.
enum class RowKind : char { kHeader = 1, kState = 2, kInbox = 3, kAudit = 4 };

/// The key of a row that has a fixed length, without memory of its own.
template <std::size_t kSize>
struct FixedKey {
  std::array<char, kSize> bytes;
  operator std::string_view() const noexcept { return {bytes.data(), kSize}; }
};

/// 8 bytes id, big-endian so that rows sort by id, then the kind.
[[nodiscard]] FixedKey<9> procedure_key(ProcedureId id, RowKind kind) noexcept;
/// The same with the number of a message behind it, big-endian: a procedure's messages follow its
/// state in their order.
[[nodiscard]] std::string inbox_key(ProcedureId id, std::uint64_t number);
/// The same for what was ordered about the tree of a root.
[[nodiscard]] std::string audit_key(ProcedureId root, std::uint64_t number);
/// Splits such a key; nullopt when it is none.
struct ProcedureKey {
  ProcedureId id;
  RowKind kind;
  std::uint64_t number = 0;  ///< Of a message or an order.
};
[[nodiscard]] std::optional<ProcedureKey> parse_procedure_key(std::string_view key);
/// The id with which such a key begins, also when it is none otherwise; none (0) if it is too short
/// for one. All rows of one procedure begin with its id, so they lie together.
[[nodiscard]] ProcedureId id_in_key(std::string_view key) noexcept;

/// The key of the row of a root that has ended: its id, big-endian.
[[nodiscard]] FixedKey<8> result_key(ProcedureId id) noexcept;
/// The two rows that such a row is made of: views into it. nullopt: it is too short for them.
struct ResultRow {
  std::string_view header;
  std::string_view state;
};
[[nodiscard]] std::optional<ResultRow> split_result(std::string_view row) noexcept;

/// 8 bytes group, 8 bytes value, big-endian.
[[nodiscard]] FixedKey<16> nonce_key(const Nonce& nonce) noexcept;
[[nodiscard]] std::optional<Nonce> parse_nonce_key(std::string_view key);

/// What a nonce row says.
struct NonceRecord {
  ProcedureId id;
  Fingerprint fingerprint;
};
void encode_nonce_record(const NonceRecord& record, std::string& out);
[[nodiscard]] Result<NonceRecord> decode_nonce_record(std::string_view row);

/// The row of Space::kEngine that says how far the store has come.
inline constexpr std::string_view kWatermarkKey = "next_id";
struct Watermark {
  std::uint64_t next_id = 0;  ///< No id at or above it was ever issued.
  AgeMark age;
};
void encode_watermark(const Watermark& watermark, std::string& out);
[[nodiscard]] Result<Watermark> decode_watermark(std::string_view row);

/// The rows of Space::kEngine that date the results that are kept: this, 8 bytes age of the store
/// at their end, 8 bytes id, both big-endian. So they sort in the order in which they are to go.
inline constexpr std::string_view kKeptKeyPrefix = "kept:";
struct KeptResult {
  Duration age{};  ///< Of the store, when it ended, or was found.
  ProcedureId id;
  Nonce nonce;
  std::uint64_t bytes = 0;  ///< About what it takes.
  /// An older program has recorded its end, without an age: this is when it was found.
  bool found = false;
};
[[nodiscard]] std::string kept_key(Duration age, ProcedureId id);
void encode_kept(const KeptResult& kept, std::string& out);
[[nodiscard]] Result<KeptResult> decode_kept(std::string_view key, std::string_view row);
/// About what the rows of an ended root take that has fields of these sizes.
[[nodiscard]] std::size_t kept_bytes(std::size_t arguments, std::size_t image, std::size_t result,
                                     std::size_t owner) noexcept;

/// The rows of Space::kEngine that limit a key: this, the class as one byte, the name.
inline constexpr std::string_view kLimitKeyPrefix = "limit:";
[[nodiscard]] std::string limit_key(const ResourceKey& key);
/// nullopt when `row_key` is not the key of a limit.
[[nodiscard]] std::optional<ResourceKey> parse_limit_key(std::string_view row_key);
void encode_limit(std::uint32_t limit, std::string& out);
[[nodiscard]] Result<std::uint32_t> decode_limit(std::string_view row);

/// What encode_header() and encode_state() append at most.
[[nodiscard]] std::size_t header_bytes_max(const Execution& execution);
[[nodiscard]] std::size_t state_bytes_max(const Execution& execution, const Transition& next);

/// Appends the header row of `execution` to `out`.
void encode_header(const Execution& execution, std::string& out);

/// Appends the state row as it will be after `next` (the new record's own undo entry has sequence
/// 0: the sequence that the store stamps).
void encode_state(const Execution& execution, const Transition& next, std::uint32_t ran_step,
                  std::string& out);

/// Whether `next` is the end of a root, from which on a result is kept. It is dated then.
[[nodiscard]] bool ends_root(const Execution& execution, const Transition& next) noexcept;
/// Adds both rows of a new procedure; of one that ends at once what update_state() adds.
void insert_rows(const Execution& execution, const Transition& first, RowBatch& batch);
/// Adds the state row as it will be after `next`. The end of a root is dated, and moves both its
/// rows to Space::kResult. If the last record was such an end (an abort came before it), both rows
/// come back.
void update_state(const Execution& execution, const Transition& next, std::uint32_t ran_step,
                  RowBatch& batch);
/// `batch` has the last record of the root `execution`. That record is made again, with the date
/// `age`; what else is in the batch stays.
void redate_end(const Execution& execution, Transition& last, Duration age, std::uint32_t ran_step,
                RowBatch& batch);

/// What was found of one part of a row.
enum class PartStatus { kIntact, kDamaged };

/// What a header says beyond what an Execution keeps of it.
struct HeaderFacts {
  ProcedureId parent;
  ProcedureId root;
  std::string type_name;
  PartStatus user = PartStatus::kIntact;  ///< Of the arguments.
};

/// Fills the identity of `execution`. A failure means that the engine's part is unreadable; a
/// damaged user part is reported through `facts.user`.
Status decode_header(std::string_view row, Execution& execution, HeaderFacts& facts);

/// Fills the record of `execution` from its state row, which was written by batch `sequence`. The
/// row does not say whether it is among the results: its key does.
Status decode_state(std::string_view row, CommitSequence sequence, Execution& execution,
                    PartStatus& user);

}  // namespace pv2
