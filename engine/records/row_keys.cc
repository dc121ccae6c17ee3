// SPDX-License-Identifier: Apache-2.0
//
// Each key, followed by the function that parses it.

#include "records/row_keys.h"

#include <pv2/base/assert.h>
#include <pv2/base/big_endian.h>

#include <algorithm>

namespace pv2 {
namespace {

std::string numbered_key(ProcedureId id, RowKind kind, std::uint64_t number) {
  std::string key(17, static_cast<char>(kind));
  write_big_endian(key.data(), id.value);
  write_big_endian(key.data() + 9, number);
  return key;
}

}  // namespace

FixedKey<9> procedure_key(ProcedureId id, RowKind kind) noexcept {
  FixedKey<9> key;
  write_big_endian(key.bytes.data(), id.value);
  key.bytes[8] = static_cast<char>(kind);
  return key;
}

std::string inbox_key(ProcedureId id, std::uint64_t number) {
  return numbered_key(id, RowKind::kInbox, number);
}

std::string audit_key(ProcedureId id, std::uint64_t number) {
  return numbered_key(id, RowKind::kAudit, number);
}

std::optional<ProcedureKey> parse_procedure_key(std::string_view key) {
  if (key.size() != 9 && key.size() != 17) return std::nullopt;
  const auto kind = static_cast<RowKind>(key[8]);
  if (key.size() == 17) {
    if (kind != RowKind::kInbox && kind != RowKind::kAudit) return std::nullopt;
    return ProcedureKey{ProcedureId{read_big_endian(key)}, kind, read_big_endian(key.substr(9))};
  }
  if (kind != RowKind::kHeader && kind != RowKind::kState) return std::nullopt;
  return ProcedureKey{ProcedureId{read_big_endian(key)}, kind};
}

ProcedureId id_in_key(std::string_view key) noexcept {
  return key.size() < 8 ? ProcedureId() : ProcedureId{read_big_endian(key)};
}

FixedKey<8> result_key(ProcedureId id) noexcept {
  FixedKey<8> key;
  write_big_endian(key.bytes.data(), id.value);
  return key;
}

FixedKey<16> nonce_key(const Nonce& nonce) noexcept {
  FixedKey<16> key;
  write_big_endian(key.bytes.data(), nonce.group);
  write_big_endian(key.bytes.data() + 8, nonce.value);
  return key;
}

std::optional<Nonce> parse_nonce_key(std::string_view key) {
  if (key.size() != 16) return std::nullopt;
  return Nonce{read_big_endian(key), read_big_endian(key.substr(8))};
}

KeptKeyBytes kept_key(Duration age, ProcedureId id) noexcept {
  PV2_ASSERT(age >= Duration::zero(), "the age of a store is not negative");
  KeptKeyBytes key;
  char* const numbers = std::copy(kKeptKeyPrefix.begin(), kKeptKeyPrefix.end(), key.bytes.data());
  write_big_endian(numbers, static_cast<std::uint64_t>(age.count()));
  write_big_endian(numbers + 8, id.value);
  return key;
}

std::optional<KeptKey> parse_kept_key(std::string_view key) {
  if (key.size() != kKeptKeyPrefix.size() + 16) return std::nullopt;
  const std::string_view numbers = key.substr(kKeptKeyPrefix.size());
  return KeptKey{Duration(static_cast<Duration::rep>(read_big_endian(numbers))),
                 ProcedureId{read_big_endian(numbers.substr(8))}};
}

std::string limit_key(const ResourceKey& key) {
  return std::string(kLimitKeyPrefix) + static_cast<char>(key.cls) + key.name;
}

std::optional<ResourceKey> parse_limit_key(std::string_view key) {
  if (!key.starts_with(kLimitKeyPrefix) || key.size() == kLimitKeyPrefix.size()) {
    return std::nullopt;
  }
  key.remove_prefix(kLimitKeyPrefix.size());
  return ResourceKey{static_cast<ResourceClass>(key.front()), std::string(key.substr(1))};
}

}  // namespace pv2
