// SPDX-License-Identifier: Apache-2.0
//
// Answers come on the network's thread, and are shown by the shell's.

#include "commands/procedure_progress.h"

#include <fmt/format.h>
#include <pv2/base/mutex.h>

#include "commands/procedure_run.h"
#include "output/duration.h"

namespace pv2::shell {

struct ProcedureProgress::Shared {
  Mutex answers_mutex;
  std::optional<ProcedureInfo> info PV2_GUARDED_BY(answers_mutex);
  std::string waiting PV2_GUARDED_BY(answers_mutex);
  unsigned questions PV2_GUARDED_BY(answers_mutex) = 0;  ///< On their way.
};

ProcedureProgress::ProcedureProgress(Shell& shell, ProcedureId id)
    : shell_(shell), id_(id), begin_(shell.now()), shared_(std::make_shared<Shared>()) {}

ProcedureProgress::~ProcedureProgress() {
  // Without a master they would be asked for as long as the shell lives.
  for (const CallTicket question : {list_, explain_}) shell_.executor().cancel(question);
}

void ProcedureProgress::look() {
  if (!shell_.progress().shows()) return;
  std::string line = fmt::format("procedure {}", id_.value);
  bool asks = false;
  {
    Shared& shared = *shared_;
    const MutexLock lock(shared.answers_mutex);
    if (shared.info) {
      line += fmt::format(", {}, step {}", short_type(shared.info->type), shared.info->step_name);
      if (shared.info->undo) line += " (undone)";
      if (!shared.info->progress.empty()) line += ", " + shared.info->progress;
    }
    line += ", " + in_words(shell_.now() - begin_);
    if (!shared.waiting.empty()) line += ": " + shared.waiting;
    asks = shared.questions == 0;
    if (asks) shared.questions = 2;
  }
  shell_.progress().show(line);
  if (!asks) return;
  list_ = shell_.executor().list({.root = id_, .with_fields = true}, {}, 1,
                                 [shared = shared_](Result<ProcedurePage> page) {
                                   const MutexLock lock(shared->answers_mutex);
                                   --shared->questions;
                                   if (!page.ok() || page->procedures.empty()) return;
                                   shared->info = std::move(page->procedures.front());
                                 });
  explain_ =
      shell_.executor().explain(id_, [shared = shared_](const Result<Explanation>& explanation) {
        const MutexLock lock(shared->answers_mutex);
        --shared->questions;
        shared->waiting = explanation.ok() ? waiting_in_words(*explanation) : std::string();
      });
}

std::string waiting_in_words(const Explanation& explanation) {
  using Kind = WaitReason::Kind;
  if (explanation.procedures.empty()) return {};
  for (const WaitReason& reason : explanation.procedures.front().reasons) {
    switch (reason.kind) {
      case Kind::kSubmitting:
      case Kind::kQueued:
      case Kind::kChildren:  // its progress says so already
      case Kind::kRunning:
      case Kind::kTaken:
      case Kind::kRun:
      case Kind::kCommitting:
      case Kind::kFinished:
        continue;
      default:
        return to_string(reason);
    }
  }
  return {};
}

}  // namespace pv2::shell
