// SPDX-License-Identifier: Apache-2.0
//
// Makes the clients, shares the work between them, and takes them down in the right order.

#include "fleet.h"

#include <utility>

namespace counter {
namespace {

using std::chrono::milliseconds;

// A few times what an answer takes: an attempt that has lost its call or its reply costs this.
constexpr pv2::Duration kAttemptTimeout = milliseconds(250);
constexpr pv2::Duration kPauseMax = milliseconds(100);

/// The share of one of `all`, so that the shares add up.
std::uint64_t share(std::uint64_t work, std::uint64_t number, std::uint64_t all) {
  return work / all + (number < work % all ? 1 : 0);
}

}  // namespace

Fleet::Fleet(FleetOptions options)
    : options_(std::move(options)), operations_(options_.work.increments + options_.work.appends) {}

pv2::Result<std::unique_ptr<Fleet>> Fleet::open(FleetOptions options) {
  std::unique_ptr<Fleet> fleet(new Fleet(std::move(options)));
  for (std::uint64_t number = 0; number < fleet->options_.clients; ++number) {
    if (pv2::Status status = fleet->add_client(number); !status.ok()) return status;
  }
  return fleet;
}

pv2::Status Fleet::add_client(std::uint64_t number) {
  auto link = pv2::RpcClient::open({.transport = options_.transport,
                                    .addresses = {options_.address},
                                    .calls_max = options_.work.in_flight,
                                    .attempt_timeout = kAttemptTimeout,
                                    .pause_max = kPauseMax,
                                    .seed = options_.seed + number});
  if (!link.ok()) return link.status();
  links_.push_back(*std::move(link));
  auto caller = make_caller(options_.way, options_.dedup, *links_.back());
  if (!caller.ok()) return caller.status();
  Work work = options_.work;
  work.increments = share(work.increments, number, options_.clients);
  work.appends = share(work.appends, number, options_.clients);
  clients_.push_back(
      std::make_unique<Client>(number + 1, options_.seed * 1000 + number, work, *std::move(caller),
                               ledger_, [this] { options_.on_answer(answers_.fetch_add(1) + 1); }));
  return {};
}

Fleet::~Fleet() {
  pv2::run_on_loop(*options_.transport, [this] {
    for (const auto& client : clients_) client->stop();
  });
  links_.clear();
}

void Fleet::start() {
  options_.transport->post([this] {
    for (const auto& client : clients_) client->go_on();
  });
}

Fleet::Counts Fleet::counts() const {
  Counts sum;
  for (const auto& link : links_) {
    const pv2::RpcClientCounts counts = link->counts();
    sum.sent += counts.sent;
    sum.connections += counts.connections;
  }
  pv2::run_on_loop(*options_.transport, [&] {
    for (const auto& client : clients_) sum.asked_again += client->asked_again();
  });
  return sum;
}

}  // namespace counter
