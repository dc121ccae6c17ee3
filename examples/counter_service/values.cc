// SPDX-License-Identifier: Apache-2.0
//
// Computes the effects of operations and writes their rows.

#include "values.h"

#include <fmt/format.h>

#include <algorithm>

#include "rows.h"

namespace counter {
namespace {

using pv2::Space;
using pv2::Status;
using pv2::StatusCode;

Status corrupt(std::string_view key) {
  return {StatusCode::kCorruption, fmt::format("the row {} is not the service's", key)};
}

Status too_many_names() {
  return {StatusCode::kFailedPrecondition,
          fmt::format("the service keeps {} names, and no more", Values::kNamesMax)};
}

}  // namespace

Status Values::load(pv2::RowLog& rows) {
  Status loaded = rows.scan(kCounterRows, [this](const pv2::StoredRow& row) -> Status {
    const auto value = parse_number(row.value);
    if (!value) return corrupt(row.key);
    counters_[std::string(row.key.substr(kCounterRows.size()))] = {*value, *value};
    return {};
  });
  if (!loaded.ok()) return loaded;
  return rows.scan(kTextRows, [this](const pv2::StoredRow& row) -> Status {
    const std::string_view rest = row.key.substr(kTextRows.size());
    const std::string_view name = rest.substr(0, rest.find('/'));
    Text& text = texts_[std::string(name)];
    if (row.key != piece_row(name, text.newest.size())) return corrupt(row.key);
    text.newest += row.value;
    text.durable = text.newest.size();
    return {};
  });
}

pv2::Result<std::string> Values::add(const AddRequest& request, pv2::RowBatch& effect) {
  const auto known = counters_.find(request.name);
  if (known == counters_.end() && counters_.size() >= kNamesMax) return too_many_names();
  const std::uint64_t before = known == counters_.end() ? 0 : known->second.newest;
  const std::uint64_t after = before + request.amount;
  if (request.not_above && after > *request.not_above) {
    return Status(StatusCode::kFailedPrecondition,
                  fmt::format("{} is {}; with {} more it would be above {}", request.name, before,
                              request.amount, *request.not_above));
  }
  counters_[request.name].newest = after;
  std::string answer = std::to_string(after);
  effect.put(Space::kHost, counter_row(request.name), answer);
  return answer;
}

pv2::Result<std::string> Values::append(const AppendRequest& request, pv2::RowBatch& effect) {
  if (!texts_.contains(request.name) && texts_.size() >= kNamesMax) return too_many_names();
  Text& text = texts_[request.name];
  if (text.newest.size() + request.piece.size() > kTextBytesMax) {
    return Status(StatusCode::kFailedPrecondition,
                  fmt::format("{} is as long as a text may be", request.name));
  }
  effect.put(Space::kHost, piece_row(request.name, text.newest.size()), request.piece);
  text.newest += request.piece;
  return std::to_string(text.newest.size());
}

void Values::counter_is_durable(const std::string& name, std::uint64_t value) {
  Counter& counter = counters_[name];
  counter.durable = std::max(counter.durable, value);
}

void Values::text_is_durable(const std::string& name, std::uint64_t size) {
  Text& text = texts_[name];
  text.durable = std::max(text.durable, static_cast<std::size_t>(size));
}

std::uint64_t Values::counter(const std::string& name) const {
  const auto found = counters_.find(name);
  return found == counters_.end() ? 0 : found->second.durable;
}

std::string_view Values::text(const std::string& name) const {
  const auto found = texts_.find(name);
  if (found == texts_.end()) return {};
  return std::string_view(found->second.newest).substr(0, found->second.durable);
}

}  // namespace counter
