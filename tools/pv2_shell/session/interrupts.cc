// SPDX-License-Identifier: Apache-2.0
//
// Without SA_RESTART: a read of the terminal returns when a signal comes.

#include "session/interrupts.h"

#include <atomic>
#include <csignal>

namespace pv2::shell {
namespace {

// Lock-free, so that a handler may write them; nothing else is told through them.
std::atomic<bool> interrupted{false};
std::atomic<bool> ending{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void on_interrupt(int) { interrupted.store(true, std::memory_order_relaxed); }
void on_end(int) {
  interrupted.store(true, std::memory_order_relaxed);
  ending.store(true, std::memory_order_relaxed);
}

void set_handler(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

Interrupts::Interrupts() {
  interrupted = false;
  ending = false;
  set_handler(SIGINT, on_interrupt);
  set_handler(SIGTERM, on_end);
  set_handler(SIGHUP, on_end);
}

Interrupts::~Interrupts() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) set_handler(signal, SIG_DFL);
}

bool Interrupts::take() { return interrupted.exchange(false, std::memory_order_relaxed); }
bool Interrupts::came() { return interrupted.load(std::memory_order_relaxed); }
bool Interrupts::must_end() { return ending.load(std::memory_order_relaxed); }

}  // namespace pv2::shell
