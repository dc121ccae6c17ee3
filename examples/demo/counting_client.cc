// SPDX-License-Identifier: Apache-2.0
//
// One addition at a time; the callback of each begins the next one.

#include "counting_client.h"

#include <fmt/format.h>
#include <pv2/base/mutex.h>

#include <array>
#include <chrono>
#include <utility>

namespace demo {
namespace {

using pv2::cluster::MutationKind;
using pv2::cluster::WriteOutcome;

constexpr std::size_t kRows = 16;
// Longer than any recovery takes on a busy machine: nothing may stay unknown.
constexpr auto kAddPatience = std::chrono::minutes(2);

std::string row_of(std::size_t index) {
  return {static_cast<char>(256 / kRows * index), static_cast<char>(index)};
}

}  // namespace

struct CountingClient::Core : std::enable_shared_from_this<Core> {
  Core(pv2::cluster::ClusterClient& given_client, pv2::TableName given_table,
       std::string given_family)
      : client(given_client), table(std::move(given_table)), family(std::move(given_family)) {}

  void add(std::size_t index) {
    client.write(table,
                 {{.kind = MutationKind::kIncrement,
                   .row = row_of(index),
                   .family = family,
                   .qualifier = "count",
                   .amount = 1}},
                 {.timeout = kAddPatience},
                 [self = shared_from_this(), index](const WriteOutcome& outcome) {
                   self->added(index, outcome);
                 });
  }

  void added(std::size_t index, const WriteOutcome& outcome) {
    {
      const pv2::MutexLock lock(counts_mutex);
      if (outcome.ok()) {
        ++counts[index];
      } else {
        failures.push_back(outcome.status.to_string());
      }
      runs = !stopping && outcome.ok();
      if (!runs) return ended.notify_all();
    }
    add((index + 1) % kRows);
  }

  pv2::cluster::ClusterClient& client;
  const pv2::TableName table;
  const std::string family;
  mutable pv2::Mutex counts_mutex;
  pv2::CondVar ended;
  bool runs PV2_GUARDED_BY(counts_mutex) = false;
  bool stopping PV2_GUARDED_BY(counts_mutex) = false;
  std::array<std::uint64_t, kRows> counts PV2_GUARDED_BY(counts_mutex){};
  std::vector<std::string> failures PV2_GUARDED_BY(counts_mutex);
};

CountingClient::CountingClient(pv2::cluster::ClusterClient& client, pv2::TableName table,
                               std::string family)
    : core_(std::make_shared<Core>(client, std::move(table), std::move(family))) {}

CountingClient::~CountingClient() { stop(); }

void CountingClient::start() {
  {
    const pv2::MutexLock lock(core_->counts_mutex);
    core_->runs = true;
    core_->stopping = false;
  }
  core_->add(0);
}

void CountingClient::stop() {
  pv2::MutexLock lock(core_->counts_mutex);
  core_->stopping = true;
  while (core_->runs) core_->ended.wait(core_->counts_mutex);
}

std::uint64_t CountingClient::acknowledged() const {
  const pv2::MutexLock lock(core_->counts_mutex);
  std::uint64_t sum = 0;
  for (const std::uint64_t count : core_->counts) sum += count;
  return sum;
}

std::vector<std::string> CountingClient::check() const {
  std::array<std::uint64_t, kRows> counts{};
  std::vector<std::string> wrong;
  {
    const pv2::MutexLock lock(core_->counts_mutex);
    counts = core_->counts;
    wrong = core_->failures;
  }
  for (std::size_t i = 0; i < kRows; ++i) {
    const auto cells = core_->client.get(core_->table, row_of(i));
    const std::string value = !cells.ok()      ? cells.status().to_string()
                              : cells->empty() ? "0"
                                               : cells->front().value;
    if (value != std::to_string(counts[i])) {
      wrong.push_back(
          fmt::format("row {}: {} additions were acknowledged, it says {}", i, counts[i], value));
    }
  }
  return wrong;
}

}  // namespace demo
