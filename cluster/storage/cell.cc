// SPDX-License-Identifier: Apache-2.0
//
// The limits of writes, checked before anything is done with them, and the walk from page to page.

#include "pv2/cluster/cell.h"

#include <fmt/core.h>
#include <pv2/base/assert.h>

namespace pv2::cluster {
namespace {

Status refused(std::string message) { return {StatusCode::kInvalidArgument, std::move(message)}; }

Status check_mutation(const Mutation& mutation) {
  if (mutation.row.empty()) return refused("a mutation names no row");
  if (mutation.row.size() > kRowBytesMax)
    return refused(
        fmt::format("a row has {} bytes of at most {}", mutation.row.size(), kRowBytesMax));
  if (mutation.qualifier.size() > kQualifierBytesMax)
    return refused(fmt::format("a qualifier has {} bytes of at most {}", mutation.qualifier.size(),
                               kQualifierBytesMax));
  if (mutation.value.size() > kValueBytesMax)
    return refused(
        fmt::format("a value has {} bytes of at most {}", mutation.value.size(), kValueBytesMax));
  switch (mutation.kind) {
    case MutationKind::kDeleteRow:
      if (!mutation.family.empty() || !mutation.qualifier.empty())
        return refused("the deletion of a row names a family or a qualifier");
      return {};
    case MutationKind::kPut:
    case MutationKind::kDelete:
    case MutationKind::kAppend:
    case MutationKind::kIncrement:
    case MutationKind::kReplicatedPut:
    case MutationKind::kReplicatedDelete:
      if (mutation.family.empty()) return refused("a mutation names no family");
      if (mutation.family.size() > kFamilyBytesMax)
        return refused(fmt::format("a family has {} bytes of at most {}", mutation.family.size(),
                                   kFamilyBytesMax));
      return {};
  }
  return refused(fmt::format("{} is no kind of mutation", static_cast<int>(mutation.kind)));
}

}  // namespace

Scan rest_of(Scan scan, const ScanPage& page) {
  PV2_ASSERT(page.next_row.has_value(), "the last page of a range has no rest");
  scan.start_row = *page.next_row;
  scan.start_family = page.next_family;
  scan.start_qualifier = page.next_qualifier;
  return scan;
}

Status check_mutations(const std::vector<Mutation>& mutations) {
  if (mutations.empty()) return refused("a write has no mutation");
  if (mutations.size() > kMutationsMax)
    return refused(
        fmt::format("a write has {} mutations of at most {}", mutations.size(), kMutationsMax));
  std::size_t bytes = 0;
  for (const Mutation& mutation : mutations) {
    if (Status bad = check_mutation(mutation); !bad.ok()) return bad;
    if (is_replicated(mutation.kind) != is_replicated(mutations.front().kind))
      return refused("a write is replicated as a whole or not at all");
    bytes += mutation.row.size() + mutation.family.size() + mutation.qualifier.size() +
             mutation.value.size();
  }
  if (bytes > kWriteBytesMax)
    return refused(fmt::format("a write has {} bytes of at most {}", bytes, kWriteBytesMax));
  return {};
}

Status check_origins(const std::vector<Mutation>& mutations,
                     const std::vector<std::string>& origins) {
  const bool replicated = !mutations.empty() && is_replicated(mutations.front().kind);
  if (replicated == !origins.empty()) return {};
  return refused(replicated ? "a replicated write does not say which cluster it comes from"
                            : "a write with origins has to be a replicated one");
}

}  // namespace pv2::cluster
