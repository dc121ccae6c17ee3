// SPDX-License-Identifier: Apache-2.0
//
// Each call is one look into a table, under a mutex of its own: the state mutex is not held.

#include "orders/order_nonces.h"

#include <pv2/base/assert.h>

#include <algorithm>
#include <utility>

#include "model/names.h"

namespace pv2 {

std::string name_of(const OrderContent& order) {
  std::string name = fmt::format("{} of {}", to_string(order.verb), name_of(order.procedure));
  if (order.next_step != 0) name += fmt::format(", followed by step {}", order.next_step);
  return name;
}

Status why_not_the_same(const Nonce& nonce, const OrderContent& earlier,
                        const OrderContent& order) {
  if (earlier == order) return Status();
  return Status(
      StatusCode::kKeyReused,
      fmt::format("nonce {}/{} was used for {}, so it cannot be used for {}; take another",
                  nonce.group, nonce.value, name_of(earlier), name_of(order)));
}

OrderNonces::Turn OrderNonces::enter(const Nonce& nonce, const OrderContent& order,
                                     Reply<Result<Ordered>>& reply) {
  PV2_ASSERT(nonce, "an order without a nonce takes no turn");
  const MutexLock lock(nonces_mutex_);
  auto [found, is_first] = under_way_.try_emplace(nonce);
  UnderWay& under_way = found->second;
  if (is_first) {
    under_way.order = order;
  } else if (Status other = why_not_the_same(nonce, under_way.order, order); !other.ok()) {
    return {.refusal = std::move(other)};
  } else if (under_way.waiters.size() > kCopiesMax) {
    return {.refusal = Status(StatusCode::kUnavailable,
                              fmt::format("{} is in progress, and {} copies of it wait for its "
                                          "answer; try again",
                                          name_of(order), kCopiesMax))};
  }
  try {
    under_way.waiters.push_back({.number = ++last_number_, .reply = std::move(reply)});
  } catch (...) {  // there is no memory, and nobody has the turn
    if (is_first) under_way_.erase(found);
    throw;
  }
  if (is_first) under_way.first = last_number_;
  return {.is_first = is_first, .ticket = {.nonce = nonce, .number = last_number_}};
}

std::vector<OrderNonces::Waiter> OrderNonces::leave(const OrderTicket& first) {
  const MutexLock lock(nonces_mutex_);
  const auto found = under_way_.find(first.nonce);
  if (found == under_way_.end() || found->second.first != first.number) return {};
  std::vector<Waiter> waiters = std::move(found->second.waiters);
  under_way_.erase(found);
  return waiters;
}

bool OrderNonces::withdraw(const OrderTicket& ticket) {
  Reply<Result<Ordered>> dropped;  // destroyed outside of the mutex: it is the caller's
  const MutexLock lock(nonces_mutex_);
  const auto found = under_way_.find(ticket.nonce);
  if (found == under_way_.end()) return false;
  std::vector<Waiter>& waiters = found->second.waiters;
  const auto waiter = std::find_if(waiters.begin(), waiters.end(),
                                   [&](const Waiter& one) { return one.number == ticket.number; });
  if (waiter == waiters.end()) return false;
  dropped = std::move(waiter->reply);
  waiters.erase(waiter);
  return true;
}

}  // namespace pv2
