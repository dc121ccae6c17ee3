// SPDX-License-Identifier: Apache-2.0
//
// Calls to the region of the catalogue. A write is the same write however often it is sent: the
// server remembers its nonce in the region itself.

#include "master/meta_table.h"

#include <pv2/base/fields.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "wire/methods.h"
#include "wire/region_messages.h"

namespace pv2::cluster {
namespace {

// A server that hosts the region answers within milliseconds; one that is dead is noticed by its
// lease, and host_changed() ends the pause.
constexpr Duration kAttemptTimeout = std::chrono::seconds(5);
constexpr Duration kPause = std::chrono::milliseconds(100);
constexpr Duration kNoticePause = std::chrono::minutes(1);
// Far below the limits of a frame.
constexpr std::uint64_t kPageRows = 1000;

}  // namespace

void MetaTable::write(std::vector<Mutation> mutations, std::function<void(Status)> done) {
  WriteRequest request{meta_region().id, std::move(mutations), epoch_};
  std::string body;
  encode_fields(request, FieldSelection::kAll, body);
  begin(kRegionWrite, std::move(body), false,
        [done = std::move(done)](const Result<std::string>& answer) { done(answer.status()); });
}

void MetaTable::read_all(std::function<void(Result<std::vector<Cell>>)> done) {
  read_page({.rows_max = kPageRows}, std::make_shared<std::vector<Cell>>(), std::move(done));
}

void MetaTable::read_page(const Scan& scan, std::shared_ptr<std::vector<Cell>> cells,
                          std::function<void(Result<std::vector<Cell>>)> done) {
  ScanRequest request{meta_region().id, scan, epoch_};
  std::string body;
  encode_fields(request, FieldSelection::kAll, body);
  begin(kRegionScan, std::move(body), true,
        [this, scan, cells = std::move(cells), done = std::move(done)](Result<std::string> answer) {
          if (!answer.ok()) return done(answer.status());
          ScanPage page;
          if (Status bad = decode_fields(page, FieldSelection::kAll, *answer); !bad.ok()) {
            return done(bad);
          }
          std::ranges::move(page.cells, std::back_inserter(*cells));
          if (!page.next_row) return done(std::move(*cells));
          read_page(rest_of(scan, page), cells, done);
        });
}

void MetaTable::begin(std::string_view method, std::string body, bool read_only,
                      std::function<void(Result<std::string>)> done) {
  auto operation = std::make_shared<Operation>();
  operation->method = method;
  operation->body = std::move(body);
  operation->read_only = read_only;
  if (!read_only) operation->nonce = nonces_.next();
  operation->done = std::move(done);
  operations_.push_back(operation);
  attempt(operation);
}

void MetaTable::host_changed() {
  const auto all = operations_;
  for (const auto& operation : all) attempt(operation);
}

void MetaTable::attempt(const std::shared_ptr<Operation>& operation) {
  if (operation->is_calling) return;
  if (std::ranges::find(operations_, operation) == operations_.end()) return;  // it is done
  const std::optional<ServerName> host = events_.find_host();
  if (!host) return;  // host_changed() tries again
  operation->is_calling = true;
  links_.call(*host, operation->method, operation->body,
              // Another server may have done an earlier attempt, so each one is a resumed call.
              {.nonce = operation->nonce,
               .resumed = !operation->read_only,
               .read_only = operation->read_only,
               .timeout = kAttemptTimeout},
              tasks_.guarded<CallOutcome>([this, operation, host = *host](CallOutcome outcome) {
                operation->is_calling = false;
                const StatusCode code = outcome.status.code();
                if (code == StatusCode::kFenced) events_.on_later_epoch();
                // A write that no server will ever take: nothing changes that.
                if (!outcome.ok() && code != StatusCode::kInvalidArgument) {
                  note_failure(host, outcome.status);
                  tasks_.after(kPause, [this, operation] { attempt(operation); });
                  return;
                }
                std::erase(operations_, operation);
                if (!outcome.ok()) return operation->done(outcome.status);
                operation->done(std::move(outcome.body));
              }));
}

void MetaTable::note_failure(const ServerName& host, const Status& why) {
  const std::pair failure(host, why.code());
  if (failure == noted_ && tasks_.now() < note_again_at_) return;
  noted_ = failure;
  note_again_at_ = tasks_.now() + kNoticePause;
  events_.notice("a call to the catalogue's table on server " + to_string(host) +
                 " is repeated: " + why.to_string());
}

}  // namespace pv2::cluster
