// SPDX-License-Identifier: Apache-2.0
//
// Read make_candidate() first: it runs the checks in the order in which a caller hears of them.

#include "submission/candidate.h"

#include <algorithm>
#include <string>
#include <utility>

#include "model/check_limits.h"
#include "pv2/engine/executor_options.h"
#include "pv2/engine/procedure_registry.h"
#include "records/object_codec.h"

namespace pv2 {
namespace {

// The fields of most procedures take less; a string that grows as they are encoded is allocated
// several times.
constexpr std::size_t kUsualBytes = 256;

Result<const ProcedureType*> find_type(const EngineCore& core, std::string_view name) {
  const ProcedureType* const type = core.options.registry.find(name);
  if (type != nullptr) return type;
  return Status(StatusCode::kInvalidArgument,
                "procedure type '" + shortened(name) +
                    "' is not registered; add it to the ProcedureRegistry before open()");
}

// A record of an earlier version may have such a root, and is run to its end.
Status check_may_be_root(const ProcedureType& type) {
  if (!type.child_only) return Status();
  return Status(StatusCode::kInvalidArgument,
                "a " + type.name +
                    " is started by other procedures only, because it relies on their locks and "
                    "checks; submit the procedure that starts it");
}

// About the size of the first record. A record that is too large is refused here; if the store
// refused it, the run of the engine would end.
std::size_t size_of(const Execution& execution) {
  std::size_t bytes = execution.arguments.size() + execution.record.image.size() +
                      execution.owner().size() + execution.name_of_type().size() +
                      execution.locks().primary().name.size();
  for (std::size_t i = 0; i < execution.locks().size(); ++i) {
    bytes += execution.locks().key(i).name.size() + 32;  // its class, its mode and their framing
  }
  return bytes;
}

Status check_size(const EngineCore& core, const Execution& execution) {
  const std::size_t bytes = size_of(execution);
  const std::size_t limit = record_bytes_max(core.store_limits) / 2;
  if (bytes <= limit) return Status();
  return Status(StatusCode::kInvalidArgument,
                "a " + execution.type->name + " with " + std::to_string(bytes) +
                    " bytes of fields, owner and locks is too large for " + core.store.name() +
                    "; the limit is " + std::to_string(limit));
}

Status check_expiry(const SubmitOptions& options, Duration ttl, WallTime now) {
  if (!options.expires_at) return Status();
  if (!options.nonce) {
    return Status(StatusCode::kInvalidArgument,
                  "SubmitOptions has an expires_at but no nonce; it says how long a nonce is sent");
  }
  if (ttl == Duration::zero() || *options.expires_at <= now || *options.expires_at - now < ttl) {
    return Status();
  }
  return Status(StatusCode::kInvalidArgument,
                "SubmitOptions::expires_at is later than a nonce is sure to be known "
                "(RetentionPolicy::ttl)");
}

// A delayed start is a timed wait, which the first record contains.
Status defer_start(Execution& execution, const SubmitOptions& options, const Clock& clock) {
  if (!options.delay && !options.start_at) return Status();
  if (options.delay && *options.delay < Duration::zero()) {
    return Status(StatusCode::kInvalidArgument,
                  "SubmitOptions::delay is negative; leave it out to start at once");
  }
  if (options.delay && options.start_at) {
    return Status(StatusCode::kInvalidArgument,
                  "SubmitOptions has both a delay and a start_at; give one of them");
  }
  const WallTime start =
      options.start_at ? *options.start_at : later(execution.submitted, *options.delay);
  if (start <= execution.submitted) return Status();
  execution.record.deadline = start;
  execution.record.patience = left_after_restart(start, Duration::max(), execution.submitted);
  execution.wait.due = later(clock.steady_now(), execution.record.patience);
  return Status();
}

}  // namespace

WallTime earliest_now(const EngineCore& core) {
  const AgeMark mark = core.age.mark();
  const WallTime now = core.clock.wall_now();
  if (!mark.trusted_at) return now;
  return std::max(now, later(*mark.trusted_at, mark.age - mark.trusted_age));
}

Result<Candidate> make_candidate(EngineCore& core, std::string_view type,
                                 std::unique_ptr<Procedure> procedure,
                                 const SubmitOptions& options) {
  Candidate candidate;
  candidate.execution = std::make_unique<Execution>();
  Execution& execution = *candidate.execution;
  const auto found = find_type(core, type);
  if (!found.ok()) return found.status();
  execution.type = *found;
  Status checked = execution.type->check_class_of(*procedure);
  if (!checked.ok()) return checked;
  checked = check_may_be_root(*execution.type);
  if (!checked.ok()) return checked;
  checked = check_bytes("SubmitOptions::owner", options.owner.size(), limits::kOwnerBytes);
  if (!checked.ok()) return checked;
  execution.belong_to(nullptr);
  execution.set_owner(options.owner);
  execution.record.step = execution.type->steps.front().number;
  execution.submitted = core.clock.wall_now();
  candidate.expires_at = options.expires_at;
  candidate.now = options.expires_at ? earliest_now(core) : execution.submitted;
  checked = check_expiry(options, core.options.retention.ttl, candidate.now);
  if (!checked.ok()) return checked;
  std::string scratch;
  scratch.reserve(kUsualBytes);
  checked = describe_new(*procedure, execution, scratch);
  if (!checked.ok()) return checked;
  checked = defer_start(execution, options, core.clock);
  if (!checked.ok()) return checked;
  core.count_for_its_type(execution);
  checked = check_size(core, execution);
  if (!checked.ok()) return checked;
  if (options.nonce) {
    candidate.fingerprints = fingerprints_of(execution, scratch);
    execution.nonce_use.edit() = {options.nonce, candidate.fingerprints.exact};
  }
  candidate.procedure = std::move(procedure);
  return candidate;
}

Result<std::unique_ptr<Procedure>> decode_new(EngineCore& core, std::string_view type,
                                              std::string_view arguments) {
  const auto found = find_type(core, type);
  if (!found.ok()) return found.status();
  const ProcedureType& known = **found;
  Status checked = check_bytes("the arguments of a " + known.name, arguments.size(),
                               record_bytes_max(core.store_limits) / 2);
  if (!checked.ok()) return checked;
  Result<std::unique_ptr<Procedure>> object = decode_arguments(known, arguments);
  if (!object.ok() && object.status().code() == StatusCode::kCorruption) {
    return Status(StatusCode::kInvalidArgument, "these are no arguments of a " + known.name + ": " +
                                                    std::string(object.status().message()));
  }
  if (object.ok() && has_unknown_fields(known.schema, FieldSelection::kArguments, arguments)) {
    return Status(StatusCode::kInvalidArgument, "there are arguments that this program's " +
                                                    known.name +
                                                    " does not have; the caller may be newer");
  }
  return object;
}

}  // namespace pv2
