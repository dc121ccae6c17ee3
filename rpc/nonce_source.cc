// SPDX-License-Identifier: Apache-2.0
//
// Counts forks, so that a child does not go on where its parent does.

#include "pv2/rpc/nonce_source.h"

#include <pthread.h>

#include <atomic>
#include <random>

namespace pv2 {
namespace {

// Relaxed: after a fork() the child has one thread, which has written it itself.
std::atomic<std::uint64_t> forks_of_process{0};

void count_forks() {
  static const int registered = pthread_atfork(
      nullptr, nullptr, [] { forks_of_process.fetch_add(1, std::memory_order_relaxed); });
  (void)registered;
}

}  // namespace

NonceSource::NonceSource() {
  count_forks();
  begin_anew();
}

void NonceSource::begin_anew() {
  const MutexLock lock(group_mutex_);
  const std::uint64_t forks = forks_of_process.load(std::memory_order_relaxed);
  if (forks_.load(std::memory_order_relaxed) == forks) return;  // another thread has done it
  std::random_device system;  // getrandom(2), or the processor's generator
  const auto word = [&system] { return (std::uint64_t{system()} << 32) | system(); };
  group_.store(word(), std::memory_order_relaxed);
  value_.store(word(), std::memory_order_relaxed);
  forks_.store(forks, std::memory_order_release);
}

Nonce NonceSource::next() {
  const std::uint64_t forks = forks_of_process.load(std::memory_order_relaxed);
  if (forks_.load(std::memory_order_acquire) != forks) begin_anew();
  std::uint64_t value = 0;
  while (value == 0) value = value_.fetch_add(1, std::memory_order_relaxed);
  return {.group = group_.load(std::memory_order_relaxed), .value = value};
}

}  // namespace pv2
