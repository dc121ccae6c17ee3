// SPDX-License-Identifier: Apache-2.0
//
// Every call is looked at on the loop; what may touch the disk runs on the queue of calls, and
// comes back to the loop to be answered.

#include "server/region_methods.h"

#include <pv2/base/fields.h>
#include <pv2/idempotency/fingerprint.h>

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "wire/methods.h"

namespace pv2::cluster {
namespace {

// A page has at most twice these bytes and one cell, because the row that reaches the limit is
// divided only when it exceeds the limit by itself. That is far below the limit of a frame.
constexpr std::uint64_t kPageBytesMax = std::uint64_t{2} << 20;
constexpr std::uint64_t kPageRowsMax = 10'000;

template <class T>
std::string encoded(T message) {
  std::string body;
  encode_fields(message, FieldSelection::kAll, body);
  return body;
}

/// The message of a call; without one, the call is answered.
template <class T>
std::optional<T> read_body(IncomingCall& call) {
  T message;
  const Status bad = decode_fields(message, FieldSelection::kAll, call.body());
  if (bad.ok()) return message;
  call.fail({StatusCode::kInvalidArgument, "not a message: " + bad.to_string()});
  return std::nullopt;
}

std::size_t bytes_of(const std::vector<Mutation>& mutations) {
  std::size_t bytes = 0;
  for (const Mutation& mutation : mutations) {
    bytes += mutation.row.size() + mutation.family.size() + mutation.qualifier.size() +
             mutation.value.size() + 64;
  }
  return bytes;
}

Status no_memory() {
  return {StatusCode::kResourceExhausted, "the server has to flush its memory first"};
}

// An edit that comes back to its cluster, because the directory of a peer has become the cluster's
// own, would replace newer writes.
Status check_is_from_elsewhere(const FileTree& files, const ClusterLayout& layout,
                               const std::vector<std::string>& origins) {
  if (origins.empty()) return {};
  const Result<std::string> own = files.read(layout.cluster_id());
  if (!own.ok()) return own.status();
  if (std::ranges::find(origins, *own) == origins.end()) return {};
  return {StatusCode::kInvalidArgument,
          "this edit has come through this cluster before; the peer is this cluster itself"};
}

// Everything that makes two writes different. Not the region: a copy may come to a daughter.
Hash128 fingerprint(const IncomingCall& call, const TableName& table, const WriteRequest& request) {
  const std::string mutations = encoded(WriteRequest{"", request.mutations, 0, request.origins});
  return fingerprint_of({kRegionWrite, call.caller(), to_string(table), mutations});
}

}  // namespace

/// A write from its arrival to its answer. The owner is destroyed before its manager, which writes
/// share because they may be destroyed after the server's parts.
struct RegionMethods::Write {
  std::shared_ptr<ServerNonceManager> nonces;
  NonceOwner owner;
  IncomingCall call;
  WriteRequest request;
  NonceRequest nonce{};
  RegionTable::Entry entry{};
  bool is_asking = false;  ///< begin_async() is on the stack.
  bool is_cancelled = false;
};

void RegionMethods::add_to(RpcMethods& methods) {
  const auto add = [&](std::string_view name, void (RegionMethods::*run)(IncomingCall)) {
    methods[std::string(name)] = [this, run](IncomingCall call) {
      // A call that is destroyed ends as unknown, which is no acknowledgement.
      if (context_.is_ended()) return;
      ++context_.requests;
      (this->*run)(std::move(call));
    };
  };
  add(kRegionWrite, &RegionMethods::write);
  add(kRegionScan, &RegionMethods::scan);
  add(kRegionFlush, &RegionMethods::flush);
  add(kRegionCompact, &RegionMethods::compact);
  add(kRegionSplitPoint, &RegionMethods::split_point);
}

Status RegionMethods::check_epoch(const RegionInfo& region, std::uint64_t epoch, bool writes) {
  if (!is_meta(region.table)) return {};
  if (epoch == 0 && !writes) return {};
  if (epoch == 0) return {StatusCode::kFenced, "only the master writes the catalogue"};
  return context_.check_master(epoch);
}

void RegionMethods::write(IncomingCall call) {
  auto request = read_body<WriteRequest>(call);
  if (!request) return;
  if (const Status bad = check_mutations(request->mutations); !bad.ok()) return call.fail(bad);
  if (const Status bad = check_origins(request->mutations, request->origins); !bad.ok()) {
    return call.fail(bad);
  }
  const auto entry = table_.find_serving(request->region);
  if (!entry.ok()) return call.refuse(entry.status());

  const NonceRequest nonce{.nonce = call.nonce(),
                           .fingerprint = fingerprint(call, (*entry)->info.table, *request),
                           .expires_at = call.expires_at()};
  ask_nonce(std::make_shared<Write>(Write{nonces_.of((*entry)->info.table), NonceOwner(),
                                          std::move(call), *std::move(request), nonce}));
}

void RegionMethods::ask_nonce(const WritePointer& write) {
  write->is_asking = true;
  // The manager may be the last who knows of a write that waits.
  const std::uint64_t ticket = write->nonces->begin_async(
      write->nonce, [this, write, post = context_.tasks.poster()](Result<NonceAnswer> answer) {
        if (write->is_asking) return take_answer(write, std::move(answer));
        // A turn of its own for each copy: a thousand of them, each refused within the refusal of
        // the one before, would overflow the stack.
        if (answer.ok() && answer->runs()) {
          write->owner = std::move(answer->owner);
          return post([this, write] { run_write(write); });
        }
        const auto later = std::make_shared<Result<NonceAnswer>>(std::move(answer));
        post([this, write, later] { take_answer(write, std::move(*later)); });
      });
  write->is_asking = false;
  if (ticket == 0) return;
  write->call.on_cancel(
      [weak = std::weak_ptr(write), nonce = write->nonce.nonce, ticket](const Status& why) {
        const WritePointer waiting = weak.lock();
        if (waiting != nullptr && waiting->nonces->cancel(nonce, ticket)) waiting->call.refuse(why);
      });
}

void RegionMethods::take_answer(const WritePointer& write, Result<NonceAnswer> answer) {
  if (context_.is_ended()) return;
  if (!answer.ok()) return write->call.refuse(answer.status());
  if (!answer->runs()) return write->call.reply(*answer->result);
  write->owner = std::move(answer->owner);
  run_write(write);
}

void RegionMethods::run_write(const WritePointer& write) {
  if (context_.is_ended()) return;
  const auto refuse = [&](const Status& why) {
    write->owner.fail();
    write->call.refuse(why);
  };
  // Again, because the write may have waited for another one with its nonce.
  const auto entry = table_.find_serving(write->request.region);
  if (!entry.ok()) return refuse(entry.status());
  if (Status bad = check_epoch((*entry)->info, write->request.epoch, true); !bad.ok()) {
    return refuse(bad);
  }
  for (const Mutation& mutation : write->request.mutations) {
    if (!(*entry)->has_row(mutation.row)) {
      return refuse({StatusCode::kNotFound, "region " + (*entry)->info.id + " has no such row"});
    }
  }
  if (!upkeep_.admit(*entry, bytes_of(write->request.mutations))) {
    return refuse(no_memory());
  }

  write->entry = *entry;
  write->entry->enter();
  RegionWrite change{.mutations = std::move(write->request.mutations),
                     .nonce = std::nullopt,
                     .now = context_.clock.wall_now(),
                     .origins = std::move(write->request.origins)};
  if (write->nonce.nonce) {
    change.nonce = {write->nonce.nonce, write->nonce.fingerprint, write->nonce.expires_at};
  }
  context_.queues.calls_of((*entry)->info.table)
      .run([this, write, &share = upkeep_.share_of((*entry)->info.table),
            change = std::move(change), post = context_.tasks.poster()]() mutable {
        // Those before it may have taken more than they said.
        if (share.is_beyond()) {
          return post([this, write] { end_write(write, no_memory(), false); });
        }
        if (const Status bad =
                check_is_from_elsewhere(context_.files, context_.layout, change.origins);
            !bad.ok()) {
          return post([this, write, bad] { end_write(write, bad, false); });
        }
        const std::size_t before = write->entry->region->memory_bytes();
        // A failure within write() says that nothing was begun. The log may answer on its own
        // thread while write() is still on this one, so the thread decides, and the flag on this
        // thread only.
        const auto caller = std::this_thread::get_id();
        const auto is_within = std::make_shared<bool>(true);
        write->entry->region->write(
            std::move(change), *write->entry->log,
            [this, write, post, caller, is_within](const Result<WriteResult>& result) {
              const bool was_begun = std::this_thread::get_id() != caller || !*is_within;
              post([this, write, result, was_begun] { end_write(write, result, was_begun); });
            });
        *is_within = false;
        const std::size_t after = write->entry->region->memory_bytes();
        if (after > before) share.add(after - before);
      });
}

void RegionMethods::end_write(const WritePointer& write, const Result<WriteResult>& result,
                              bool was_begun) {
  write->entry->leave();
  if (!result.ok() && was_begun) return context_.end(result.status().with_context("a write"));
  if (context_.is_ended()) return;
  if (!result.ok()) {
    write->owner.fail();
    upkeep_.end_if_broken(write->entry);
    return write->call.refuse(result.status());
  }
  std::string answer = encoded(*result);
  write->owner.succeed(answer);
  write->call.reply(answer);
}

void RegionMethods::scan(IncomingCall call) {
  auto request = read_body<ScanRequest>(call);
  if (!request) return;
  const auto entry = table_.find_serving(request->region);
  if (!entry.ok()) return call.refuse(entry.status());
  if (Status bad = check_epoch((*entry)->info, request->epoch, false); !bad.ok()) {
    return call.refuse(bad);
  }
  request->scan.bytes_max = std::clamp<std::uint64_t>(request->scan.bytes_max, 1, kPageBytesMax);
  request->scan.rows_max = std::clamp<std::uint64_t>(request->scan.rows_max, 1, kPageRowsMax);

  (*entry)->enter();
  WorkQueue& queue = context_.queues.calls_of((*entry)->info.table);
  auto read = [this, entry = *entry, scan = std::move(request->scan),
               post = context_.tasks.poster(),
               call = std::make_shared<IncomingCall>(std::move(call))] {
    const Result<ScanPage> page = entry->region->scan(scan);
    std::string answer = page.ok() ? encoded(*page) : std::string();
    // After the read: a server that is still not fenced has not answered with old news.
    const Status fence = entry->log->check_fence();
    post([this, entry, call, status = page.status(), fence, answer = std::move(answer)] {
      entry->leave();
      if (!fence.ok()) return context_.end(fence);
      if (context_.is_ended()) return;
      if (!status.ok()) return call->refuse(status);
      call->reply(answer);
    });
  };
  if (request->epoch == 0) return queue.run(std::move(read));
  // A write of the master before may wait for its sync. This master would not see it, and it would
  // become durable afterwards. Writes that came before this scan are in the queue before it.
  queue.run([&queue, region = (*entry)->region, read = std::move(read)] {
    region->when_visible([&queue, read] { queue.run(read); });
  });
}

void RegionMethods::flush(IncomingCall call) {
  const auto request = read_body<RegionRequest>(call);
  if (!request) return;
  const auto entry = table_.find_serving(request->region);
  if (!entry.ok()) return call.refuse(entry.status());
  upkeep_.flush(
      *entry, [this, call = std::make_shared<IncomingCall>(std::move(call))](const Status& status) {
        if (context_.is_ended()) return;
        if (!status.ok()) return call->refuse(status);
        call->reply("");
      });
}

void RegionMethods::compact(IncomingCall call) {
  const auto request = read_body<RegionRequest>(call);
  if (!request) return;
  const auto entry = table_.find_serving(request->region);
  if (!entry.ok()) return call.refuse(entry.status());
  upkeep_.compact(
      *entry, [this, call = std::make_shared<IncomingCall>(std::move(call))](const Status& status) {
        if (context_.is_ended()) return;
        if (!status.ok()) return call->refuse(status);
        call->reply("");
      });
}

void RegionMethods::split_point(IncomingCall call) {
  const auto request = read_body<RegionRequest>(call);
  if (!request) return;
  const auto entry = table_.find_serving(request->region);
  if (!entry.ok()) return call.refuse(entry.status());
  // It reads the whole region, so it does not wait among the calls.
  context_.queues.regions_of((*entry)->info.table)
      .run([this, entry = *entry, post = context_.tasks.poster(),
            call = std::make_shared<IncomingCall>(std::move(call))] {
        const auto row = entry->region->split_point();
        post([this, call, row] {
          if (context_.is_ended()) return;
          if (!row.ok()) return call->refuse(row.status());
          call->reply(encoded(SplitPoint{row->value_or("")}));
        });
      });
}

}  // namespace pv2::cluster
