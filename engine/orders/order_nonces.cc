// SPDX-License-Identifier: Apache-2.0
//
// Each call is one look into a table, under a mutex of its own: the state mutex is not held.

#include "orders/order_nonces.h"

#include <pv2/base/assert.h>

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
  } else if (under_way.replies.size() > kCopiesMax) {
    return {.refusal = Status(StatusCode::kUnavailable,
                              fmt::format("{} is in progress, and {} copies of it wait for its "
                                          "answer; try again",
                                          name_of(order), kCopiesMax))};
  }
  under_way.replies.push_back(std::move(reply));
  return {.is_first = is_first};
}

std::vector<Reply<Result<Ordered>>> OrderNonces::leave(const Nonce& nonce) {
  const MutexLock lock(nonces_mutex_);
  auto node = under_way_.extract(nonce);
  PV2_ASSERT(!node.empty(), "an order that has its answer was under way");
  return std::move(node.mapped().replies);
}

}  // namespace pv2
