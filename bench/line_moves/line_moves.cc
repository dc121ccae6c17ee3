// SPDX-License-Identifier: Apache-2.0
//
// Counts the lines of memory that move between the caches of threads. The compiler's option
// -fsanitize=thread calls a function before each access to memory. Here these functions are not the
// sanitizer's: they note for each line which threads have it, as if each thread had a processor
// with a cache that is never full. A line moves when a thread reads it that does not have it while
// others do, or writes it while others have it. Threads that share a processor give way to each
// other after every few hundred accesses.
//
// What is not seen: libraries that are compiled otherwise (malloc, the mutexes of the system), and
// memcpy() where it is a call. Two threads that touch a line at the same moment may be counted
// wrongly. A thread inherits the number, and the cache, of one that has ended. If other programs
// use the processors, the workers run one after another, and fewer lines move.

#include <dlfcn.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <vector>

extern "C" const char __executable_start;  // NOLINT: the linker's name

namespace {

constexpr std::size_t kThreadsMost = 64;  // the accesses of others are not counted
constexpr std::size_t kLines = std::size_t{1} << 26;
constexpr std::size_t kPlaces = std::size_t{1} << 14;

// Where in the program lines moved to a thread.
struct Place {
  std::uintptr_t address;
  std::uint64_t moves;
};
struct Thread {
  std::atomic<std::uint64_t> moves;  // written by the thread alone
  Place places[kPlaces];             // by hash
};

// The threads that have a line, a bit for each. Lines 4 GiB apart share an entry.
constinit std::atomic<std::uint64_t> owners[kLines]{};
constinit Thread threads[kThreadsMost]{};

std::mutex numbers_mutex;
std::vector<std::size_t>& free_numbers() {
  static auto& numbers = *new std::vector<std::size_t>();  // threads may end after main()
  return numbers;
}

std::atomic<bool> counts{false};

// The number of the calling thread.
class Number {
 public:
  Number() {
    static std::size_t next = 0;
    const std::lock_guard<std::mutex> lock(numbers_mutex);
    if (free_numbers().empty()) {
      value_ = next++;
    } else {
      value_ = free_numbers().back();
      free_numbers().pop_back();
    }
  }
  ~Number() {
    const std::lock_guard<std::mutex> lock(numbers_mutex);
    free_numbers().push_back(value_);
  }
  Number(const Number&) = delete;
  Number& operator=(const Number&) = delete;
  [[nodiscard]] std::size_t value() const { return value_; }

 private:
  std::size_t value_;
};

void note_move(Thread& thread, std::uintptr_t address) {
  std::size_t at = (address * 0x9E3779B97F4A7C15ULL) >> 50U;
  while (thread.places[at].moves != 0 && thread.places[at].address != address) {
    at = (at + 1) % kPlaces;
  }
  thread.places[at].address = address;
  ++thread.places[at].moves;
  const std::uint64_t before = thread.moves.load(std::memory_order_relaxed);
  thread.moves.store(before + 1, std::memory_order_relaxed);
}

enum class Access : std::uint8_t { kRead, kWrite };

// Lets other threads run now and then, as they would at the same time on processors of their own.
// Without it threads that share a processor take turns of milliseconds, and in its turn each has
// for itself what it uses.
void give_way() {
  constexpr std::uint32_t kAccesses = 256;
  static thread_local std::uint32_t accesses = 0;
  if (++accesses % kAccesses == 0) sched_yield();
}

void note(const volatile void* memory, std::size_t bytes, Access access, void* from) {
  static thread_local const Number number;
  give_way();
  if (number.value() >= kThreadsMost) return;
  const std::uint64_t me = std::uint64_t{1} << number.value();
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  for (std::uintptr_t line = begin / 64; line <= (begin + bytes - 1) / 64; ++line) {
    std::atomic<std::uint64_t>& have = owners[line % kLines];
    const std::uint64_t before = have.load(std::memory_order_relaxed);
    const bool is_mine = (before & me) != 0;
    const bool is_others = (before & ~me) != 0;
    if (access == Access::kRead ? is_mine : before == me) continue;
    have.store(access == Access::kRead ? before | me : me, std::memory_order_relaxed);
    if (is_others && counts.load(std::memory_order_relaxed))
      note_move(threads[number.value()], reinterpret_cast<std::uintptr_t>(from));
  }
}

// Writes each place to the file that PV2_LINE_MOVES names: its address in the program, and how many
// lines moved there.
void write_places() {
  const char* const name = std::getenv("PV2_LINE_MOVES");
  std::FILE* const file = name == nullptr ? nullptr : std::fopen(name, "w");
  if (file == nullptr) return;
  for (const Thread& thread : threads) {
    for (const Place& place : thread.places) {
      if (place.moves == 0) continue;
      const auto start = reinterpret_cast<std::uintptr_t>(&__executable_start);
      fmt::print(file, "0x{:x} {}\n", place.address - 1 - start, place.moves);
    }
  }
  std::fclose(file);
}
[[maybe_unused]] const int at_exit = std::atexit(write_places);

}  // namespace

extern "C" {

void pv2_begin_line_moves() { counts = true; }
// Returns how many lines have moved since the beginning.
std::uint64_t pv2_end_line_moves() {
  counts = false;
  std::uint64_t moved = 0;
  for (const Thread& thread : threads) moved += thread.moves.load(std::memory_order_relaxed);
  return moved;
}

// The program is about eight times as slow as without the hooks, and slower if its threads share
// processors. Workers decide by the clock what is worth sharing. So its clock is slower by the
// number in PV2_SLOWER.
int clock_gettime(clockid_t clock, timespec* now) noexcept {
  using Function = int (*)(clockid_t, timespec*);
  constexpr std::int64_t kNanos = 1'000'000'000;
  static const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "clock_gettime"));
  static const std::int64_t slower = [] {
    const char* const given = std::getenv("PV2_SLOWER");
    return given == nullptr ? 1 : std::max(std::atol(given), 1L);
  }();
  const int result =
      real != nullptr ? real(clock, now) : static_cast<int>(syscall(SYS_clock_gettime, clock, now));
  if (result != 0 || (clock != CLOCK_MONOTONIC && clock != CLOCK_REALTIME)) return result;
  static std::atomic<std::int64_t> starts[2]{};
  const std::int64_t passed = now->tv_sec * kNanos + now->tv_nsec;
  std::atomic<std::int64_t>& start = starts[clock == CLOCK_REALTIME ? 1 : 0];
  std::int64_t begin = 0;
  if (start.compare_exchange_strong(begin, passed)) begin = passed;
  const std::int64_t shown = begin + (passed - begin) / slower;
  now->tv_sec = shown / kNanos;
  now->tv_nsec = shown % kNanos;
  return result;
}

// The names that the compiler calls.
#define PV2_FROM __builtin_return_address(0)
#define PV2_HOOKS(bytes)                                                                      \
  void __tsan_read##bytes(void* at) { note(at, bytes, Access::kRead, PV2_FROM); }             \
  void __tsan_write##bytes(void* at) { note(at, bytes, Access::kWrite, PV2_FROM); }           \
  void __tsan_unaligned_read##bytes(void* at) { note(at, bytes, Access::kRead, PV2_FROM); }   \
  void __tsan_unaligned_write##bytes(void* at) { note(at, bytes, Access::kWrite, PV2_FROM); } \
  void __tsan_volatile_read##bytes(void* at) { note(at, bytes, Access::kRead, PV2_FROM); }    \
  void __tsan_volatile_write##bytes(void* at) { note(at, bytes, Access::kWrite, PV2_FROM); }
PV2_HOOKS(1)
PV2_HOOKS(2)
PV2_HOOKS(4)
PV2_HOOKS(8)
PV2_HOOKS(16)

#define PV2_CHANGE(bits, type, verb)                                                \
  type __tsan_atomic##bits##_##verb(volatile type* at, type value, int /*order*/) { \
    note(at, sizeof(type), Access::kWrite, PV2_FROM);                               \
    return __atomic_##verb(at, value, __ATOMIC_SEQ_CST);                            \
  }
#define PV2_COMPARE(bits, type, strength)                                                       \
  bool __tsan_atomic##bits##_compare_exchange_##strength(volatile type* at, type* expected,     \
                                                         type value, int /*yes*/, int /*no*/) { \
    note(at, sizeof(type), Access::kWrite, PV2_FROM);                                           \
    return __atomic_compare_exchange_n(at, expected, value, false, __ATOMIC_SEQ_CST,            \
                                       __ATOMIC_SEQ_CST);                                       \
  }
#define PV2_ATOMIC(bits, type)                                                        \
  type __tsan_atomic##bits##_load(const volatile type* at, int /*order*/) {           \
    note(at, sizeof(type), Access::kRead, PV2_FROM);                                  \
    return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                     \
  }                                                                                   \
  void __tsan_atomic##bits##_store(volatile type* at, type value, int /*order*/) {    \
    note(at, sizeof(type), Access::kWrite, PV2_FROM);                                 \
    __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                    \
  }                                                                                   \
  type __tsan_atomic##bits##_exchange(volatile type* at, type value, int /*order*/) { \
    note(at, sizeof(type), Access::kWrite, PV2_FROM);                                 \
    return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);                          \
  }                                                                                   \
  PV2_CHANGE(bits, type, fetch_add)                                                   \
  PV2_CHANGE(bits, type, fetch_sub)                                                   \
  PV2_CHANGE(bits, type, fetch_and)                                                   \
  PV2_CHANGE(bits, type, fetch_or)                                                    \
  PV2_CHANGE(bits, type, fetch_xor)                                                   \
  PV2_COMPARE(bits, type, strong)                                                     \
  PV2_COMPARE(bits, type, weak)
PV2_ATOMIC(8, unsigned char)
PV2_ATOMIC(16, unsigned short)
PV2_ATOMIC(32, unsigned int)
PV2_ATOMIC(64, unsigned long)

void __tsan_init() {}
void __tsan_vptr_update(void** at, void* /*value*/) { note(at, 8, Access::kWrite, PV2_FROM); }
void __tsan_vptr_read(void** at) { note(at, 8, Access::kRead, PV2_FROM); }
void __tsan_read_range(void* at, unsigned long bytes) {
  if (bytes != 0) note(at, bytes, Access::kRead, PV2_FROM);
}
void __tsan_write_range(void* at, unsigned long bytes) {
  if (bytes != 0) note(at, bytes, Access::kWrite, PV2_FROM);
}
void __tsan_atomic_thread_fence(int /*order*/) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __tsan_atomic_signal_fence(int /*order*/) {}

}  // extern "C"
