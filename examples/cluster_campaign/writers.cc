// SPDX-License-Identifier: Apache-2.0
//
// A writer works on one write at a time, so the order of the puts of its own row is known: a put
// follows only when the one before it is known.

#include "writers.h"

#include <fmt/format.h>
#include <pv2/base/random.h>
#include <pv2/rpc/nonce_source.h>

#include <chrono>
#include <deque>
#include <thread>
#include <utility>

namespace campaign {
namespace {

using pv2::Result;
using pv2::Status;
using pv2::StatusCode;
using pv2::cluster::Cell;
using pv2::cluster::ClusterClient;
using pv2::cluster::MutationKind;
using pv2::cluster::WriteOutcome;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kCounters = 24;
// A text is told in full with every append to it, so each of them stays short.
constexpr std::uint64_t kAppendsOfText = 150;
// So many unknown writes one writer keeps for later, so that others come in between.
constexpr std::size_t kUnknownMax = 8;

/// Spread over the whole key space.
std::string row_of(std::uint64_t number, std::string_view name) {
  return std::string(1, static_cast<char>(number * 37 % 256)) + std::string(name);
}

}  // namespace

struct Writers::Writer {
  std::uint64_t number = 0;
  pv2::Random random{0};
  pv2::NonceSource nonces;
  std::unique_ptr<ClusterClient> client;
  std::deque<Write> unknown;
  std::uint64_t appends = 0;
  std::uint64_t puts = 0;
  std::thread thread;
};

Writers::Writers(Options options) : options_(std::move(options)) {}

Status Writers::start() {
  for (std::uint64_t i = 0; i < options_.writers; ++i) {
    auto writer = std::make_unique<Writer>();
    writer->number = i;
    writer->random = pv2::Random(options_.seed * 1000 + i);
    auto client =
        ClusterClient::open({.find_master = options_.find_master, .transport = options_.transport});
    if (!client.ok()) return client.status();
    writer->client = *std::move(client);
    writers_.push_back(std::move(writer));
  }
  working_ = writers_.size();
  for (const auto& writer : writers_) {
    writer->thread = std::thread([this, &writer = *writer] { run(writer); });
  }
  return {};
}

Writers::~Writers() {
  is_finishing_ = is_over_ = true;
  for (const auto& writer : writers_) {
    if (writer->thread.joinable()) writer->thread.join();
  }
}

Status Writers::finish(pv2::Duration most) {
  is_finishing_ = true;
  const auto end = std::chrono::steady_clock::now() + most;
  while (working_ > 0 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(milliseconds(20));
  }
  is_over_ = true;
  std::size_t left = 0;
  for (const auto& writer : writers_) {
    writer->thread.join();
    left += writer->unknown.size();
  }
  if (left == 0) return {};
  return {StatusCode::kDeadlineExceeded, fmt::format("{} writes are still unknown", left)};
}

void Writers::run(Writer& writer) {
  while (!is_over_) {
    const bool is_full = writer.unknown.size() >= kUnknownMax;
    if (is_finishing_ && writer.unknown.empty()) break;
    if (is_full || is_finishing_ || (!writer.unknown.empty() && writer.random.below(4) == 0)) {
      Write write = std::move(writer.unknown.front());
      writer.unknown.pop_front();
      if (!send(writer, write)) writer.unknown.push_back(std::move(write));
      continue;
    }
    Write write = choose(writer);
    if (!send(writer, write)) writer.unknown.push_back(std::move(write));
  }
  --working_;
}

Writers::Write Writers::choose(Writer& writer) {
  using Kind = Write::Kind;
  Write write;
  write.nonce = writer.nonces.next();
  const std::uint64_t choice = writer.random.below(10);
  // The one row that it puts into has one write at a time.
  const bool may_put = writer.unknown.empty();
  if (choice < 6 || (choice == 9 && !may_put)) {
    const std::uint64_t number = writer.random.below(kCounters);
    write.kind = Kind::kIncrement;
    write.name = fmt::format("counter-{}", number);
    write.row = row_of(number, write.name);
    write.mutations = {{MutationKind::kIncrement,
                        write.row,
                        "f",
                        "n",
                        {},
                        static_cast<std::int64_t>(1 + writer.random.below(9))}};
  } else if (choice < 9) {
    const std::uint64_t page = writer.appends++ / kAppendsOfText;
    // Two writers share one text.
    write.kind = Kind::kAppend;
    write.name = fmt::format("text-{}-{}", writer.number / 2, page);
    write.row = row_of(page * 5 + writer.number / 2, write.name);
    write.mutations = {{MutationKind::kAppend, write.row, "f", "t",
                        fmt::format("{}.{};", writer.number, writer.appends), 0}};
  } else {
    write.kind = Kind::kPut;
    write.name = fmt::format("own-{}", writer.number);
    write.row = row_of(writer.number * 3 + 1, write.name);
    write.mutations = {
        {MutationKind::kPut, write.row, "f", "v", fmt::format("{}", ++writer.puts), 0}};
  }
  return write;
}

bool Writers::send(Writer& writer, Write& write) {
  const bool is_again = std::exchange(write.was_sent, true);
  // The control: nobody can know that this is the write of before.
  if (is_again && options_.forgets_nonces) {
    write.nonce = writer.nonces.next();
    write.expires_at.reset();
  }
  // Some give up early; the others wait until the region is somewhere again.
  const auto patience = writer.random.below(4) == 0 ? milliseconds(20 + writer.random.below(300))
                                                    : milliseconds(8000);
  const WriteOutcome outcome =
      writer.client->write(kTable, write.mutations,
                           {.nonce = write.nonce,
                            .expires_at = write.expires_at,
                            .resumed = is_again && !options_.forgets_nonces,
                            .timeout = patience});
  if (outcome.expires_at) write.expires_at = outcome.expires_at;
  switch (outcome.kind) {
    case WriteOutcome::Kind::kOk: {
      told(write, outcome.result);
      const pv2::MutexLock lock(told_mutex_);
      if (is_again) ++counts_.resumed;
      return true;
    }
    case WriteOutcome::Kind::kFailed: {
      const pv2::MutexLock lock(told_mutex_);
      ++counts_.failed;
      return true;
    }
    case WriteOutcome::Kind::kUnknown:
      break;
  }
  const pv2::MutexLock lock(told_mutex_);
  ++counts_.unknown;
  return false;
}

void Writers::told(const Write& write, const pv2::cluster::WriteResult& result) {
  const pv2::MutexLock lock(told_mutex_);
  rows_[write.name] = write.row;
  const pv2::cluster::Mutation& mutation = write.mutations.front();
  if (result.values.size() != 1) {
    return ledger_.contradiction(write.name + " was told no value");
  }
  const std::string& value = result.values.front();
  switch (write.kind) {
    case Write::Kind::kIncrement:
      ++counts_.increments;
      return ledger_.added(write.name, static_cast<std::uint64_t>(mutation.amount), value);
    case Write::Kind::kAppend:
      ++counts_.appends;
      // The ledger keeps where each piece begins; that it is at the end of the answer is seen here.
      if (!value.ends_with(mutation.value)) {
        ledger_.contradiction(write.name + " was told a text that does not end with its piece");
      }
      return ledger_.appended(write.name, mutation.value, std::to_string(value.size()));
    case Write::Kind::kPut:
      ++counts_.puts;
      values_[write.name] = mutation.value;
      return;
  }
}

WriterCounts Writers::counts() const {
  const pv2::MutexLock lock(told_mutex_);
  return counts_;
}

Result<std::string> Writers::compare(ClusterClient& client) {
  const pv2::MutexLock lock(told_mutex_);
  std::string wrong = ledger_.first_contradiction();
  const auto note = [&](const std::optional<std::string>& found) {
    if (found && wrong.empty()) wrong = *found;
  };
  for (const auto& [name, row] : rows_) {
    const Result<std::vector<Cell>> cells = client.get(kTable, row);
    if (!cells.ok()) return cells.status().with_context("row " + name);
    const std::string value = cells->empty() ? "" : cells->front().value;
    if (name.starts_with("counter-")) {
      note(ledger_.check_counter(name, value.empty() ? 0 : std::stoull(value)));
    } else if (name.starts_with("text-")) {
      note(ledger_.check_text(name, value));
    } else if (value != values_[name]) {
      note(fmt::format("{} is '{}', and its writer was told that it is '{}'", name, value,
                       values_[name]));
    }
  }
  return wrong;
}

}  // namespace campaign
