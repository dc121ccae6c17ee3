// SPDX-License-Identifier: Apache-2.0
//
// The comparison is by position: for every procedure, the image has the same fields in the same
// order.

#include "restart_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pv2/engine/inspection.h>

#include <optional>
#include <utility>
#include <vector>

#include "row_id.h"

namespace pv2::testing {
namespace {

std::string name_of(const PersistedProcedure& procedure) {
  return fmt::format("procedure {} ({})", procedure.id.value, procedure.type);
}

std::string difference_of(const std::string& who, std::string_view field, const std::string& before,
                          const std::string& after) {
  return fmt::format("a restart finds of {}\n      {}: {}\n    where it was\n      {}: {}", who,
                     field, after, field, before);
}

// The first field whose value differs in `after`.
std::string first_difference(const std::string& who, const PersistedProcedure& before,
                             const PersistedProcedure& after) {
  if (before.fields.size() != after.fields.size()) return "a restart does not find " + who;
  if (before.has_nothing_left && after.has_nothing_left) return {};
  const bool decided_at_restart = before.decided_at_restart || after.decided_at_restart;
  for (std::size_t i = 0; i < before.fields.size(); ++i) {
    const PersistedField& field = before.fields[i];
    if (field.by_tree && decided_at_restart) continue;
    if (field.by_wait && before.ahead_of_record) continue;
    if (field.value == after.fields[i].value) continue;
    return difference_of(who, field.name, field.value, after.fields[i].value);
  }
  return {};
}

std::vector<std::string> values_of(const std::vector<PersistedField>& fields) {
  std::vector<std::string> values;
  values.reserve(fields.size());
  for (const PersistedField& field : fields) values.push_back(field.value);
  return values;
}

}  // namespace

RestartCheck::RestartCheck(const ProcedureExecutor& executor)
    : image_(PersistedImage::of(executor)), live_(live_of(image_, executor)) {}

RestartCheck::KnownById RestartCheck::live_of(const PersistedImage& image,
                                              const ProcedureExecutor& executor) {
  KnownById known;
  for (const PersistedProcedure& procedure : image.live) {
    Known& added = known[procedure.id];
    added.image = procedure;
    const auto info = executor.inspect().describe(procedure.id);
    if (info.ok()) added.fields = info->fields + info->fields_error.to_string();
  }
  return known;
}

void RestartCheck::leave_out(const RowBatch& batch) {
  batch.for_each([&](RowOperation, Space space, std::string_view key, std::string_view) {
    if (space == Space::kProcedure || space == Space::kResult) {
      unheard_.insert(id_in(key));
    } else {
      something_else_unheard_ = true;
    }
  });
}

// The roots of the trees that have a record in a batch that was left out: it reached the disk, but
// the executor got no answer.
std::set<ProcedureId> RestartCheck::left_out(const KnownById& found) const {
  std::set<ProcedureId> roots = unheard_;
  for (const KnownById* const all : {&live_, &found}) {
    for (const auto& [id, known] : *all) {
      if (unheard_.contains(id)) roots.insert(known.image.root);
    }
  }
  return roots;
}

std::string RestartCheck::difference(const ProcedureExecutor& reloaded) const {
  const PersistedImage image = PersistedImage::of(reloaded);
  const KnownById found = live_of(image, reloaded);
  const std::set<ProcedureId> without = left_out(found);
  for (const auto& [id, known] : live_) {
    if (without.contains(known.image.root)) continue;
    const auto at = found.find(id);
    const std::string who = name_of(known.image);
    if (at == found.end()) {
      // A tree that has failed and has nothing to undo ends while the store is opened.
      const bool has_ended = !PersistedImage::of_ended(reloaded, known.image.root).fields.empty();
      if (known.image.is_failed && has_ended) continue;
      return "a restart does not find " + who;
    }
    if (at->second.fields != known.fields) {
      return difference_of(who, "fields", known.fields, at->second.fields);
    }
    const std::string difference = first_difference(who, known.image, at->second.image);
    if (!difference.empty()) return difference;
  }
  for (const auto& [id, known] : found) {
    if (live_.contains(id) || without.contains(known.image.root)) continue;
    return fmt::format("a restart finds {}, which was not there", name_of(known.image));
  }
  for (const PersistedProcedure& ended : image_.ended) {
    if (without.contains(ended.root)) continue;
    const std::string who = fmt::format("procedure {}, which had ended,", ended.id.value);
    const std::string difference =
        first_difference(who, ended, PersistedImage::of_ended(reloaded, ended.id));
    if (!difference.empty()) return difference;
  }
  if (!something_else_unheard_ && values_of(image.limits) != values_of(image_.limits)) {
    return fmt::format("a restart finds the limits {}, where they were {}",
                       fmt::join(values_of(image.limits), ", "),
                       fmt::join(values_of(image_.limits), ", "));
  }
  if (image.next_id < image_.next_id) {
    return fmt::format("after a restart ids begin at {}, but those below {} were issued",
                       image.next_id, image_.next_id);
  }
  return {};
}

}  // namespace pv2::testing
