// SPDX-License-Identifier: Apache-2.0
//
// simulate(): runs many seeds, and shrinks the first run that fails. A child process runs the seeds
// and keeps its position in memory that it shares with its parent, so that the parent can tell in
// which run the child died.

#include "pv2/testing/simulation.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <new>
#include <vector>

#include "simulation_move.h"
#include "simulation_run.h"

namespace pv2::testing {
namespace {

// A run takes milliseconds; one that takes this long is counted as endless.
constexpr unsigned kRunSecondsMax = 60;
constexpr std::size_t kShrinkRunsMax = 3000;

using Moves = std::vector<SimulationMove>;

// What a child reports, whatever happens to it. Plain memory, because the child may die at any
// moment.
struct Board {
  std::uint64_t seed;  // the seed that is running
  std::uint64_t seeds;
  std::uint64_t moves;
  std::uint64_t steps;
  std::uint64_t lives;
  bool failed;
  bool done;
  char words[8192];
};

class SharedBoard {
 public:
  SharedBoard()
      : board_(static_cast<Board*>(mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE,
                                        MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    PV2_ASSERT(board_ != MAP_FAILED, "there is memory for a page");
    new (board_) Board{};
  }
  ~SharedBoard() { munmap(board_, sizeof(Board)); }
  SharedBoard(const SharedBoard&) = delete;
  SharedBoard& operator=(const SharedBoard&) = delete;
  Board& operator*() const { return *board_; }
  Board* operator->() const { return board_; }

 private:
  Board* board_;
};

void write_words(Board& board, const std::string& words) {
  const std::size_t size = std::min(words.size(), sizeof board.words - 1);
  std::memcpy(board.words, words.data(), size);
  board.words[size] = '\0';
}

// Makes one run on this thread and reports it on the board.
void run_one(const MakeSimulation& make, std::uint64_t seed, const Moves& moves, Board& board) {
  board.seed = seed;
  SimulationRun run(make, seed);
  run.run(moves);
  ++board.seeds;
  board.moves += moves.size();
  board.steps += run.steps();
  board.lives += run.lives();
  if (run.findings().empty()) return;
  board.failed = true;
  write_words(board, run.moment() + ":\n" + run.findings().words());
}

Moves plan_of(const MakeSimulation& make, std::uint64_t seed) {
  return plan_simulation(seed, make(seed)->operations());
}

// While it lives, a child that ends can be waited for, also in a program that ignores SIGCHLD: its
// children are gone at once, without a word.
class KeptChildren {
 public:
  KeptChildren() {
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &standard, &before_);
  }
  ~KeptChildren() { sigaction(SIGCHLD, &before_, nullptr); }
  KeptChildren(const KeptChildren&) = delete;
  KeptChildren& operator=(const KeptChildren&) = delete;

 private:
  struct sigaction before_ {};
};

// Does `work` in a child process. Returns what ended the child, or "" if it ended normally.
std::string in_child(const std::function<void()>& work, bool quiet) {
  std::fflush(nullptr);
  const KeptChildren kept;
  const pid_t child = fork();
  if (child < 0) return "fork() failed";
  if (child == 0) {
    // Handlers that the parent has installed for these signals must not run in the child.
    for (const int fatal : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGALRM}) {
      signal(fatal, SIG_DFL);
    }
    sigset_t alarms;  // the parent may block them, and then no run would be too long
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    sigprocmask(SIG_UNBLOCK, &alarms, nullptr);
    if (quiet) static_cast<void>(std::freopen("/dev/null", "w", stderr));
    work();
    std::_Exit(0);  // the child must not flush or destroy what belongs to the parent
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno == EINTR) continue;
    return fmt::format("the child process cannot be waited for: {}", std::strerror(errno));
  }
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
    return fmt::format("a run did not end within {} s", kRunSecondsMax);
  }
  if (WIFSIGNALED(status)) {
    return fmt::format("the process died of {} (what it printed is on stderr)",
                       strsignal(WTERMSIG(status)));
  }
  return WEXITSTATUS(status) == 0 ? "" : fmt::format("the process ended with {}", status);
}

class Simulation {
 public:
  Simulation(const MakeSimulation& make, const SimulationOptions& options)
      : make_(make), options_(options) {}

  SimulationReport run() {
    SharedBoard board;
    board->seed = options_.first_seed;
    const auto all = [&] { run_seeds(*board); };
    std::string death;
    if (options_.isolated) {
      death = in_child(all, false);
    } else {
      all();
    }
    report_ = {
        .seeds = board->seeds, .moves = board->moves, .steps = board->steps, .lives = board->lives};
    if (!death.empty() || board->failed) {
      report_.failing_seed = board->seed;
      tell(shrink(plan_of(make_, board->seed)));
    }
    return std::move(report_);
  }

 private:
  void run_seeds(Board& board) const {
    const std::clock_t begun = std::clock();
    for (std::uint64_t i = 0; i < options_.seeds; ++i) {
      if (options_.budget) {
        const auto spent = (std::clock() - begun) / CLOCKS_PER_SEC;
        if (spent >= options_.budget->count()) return;
      }
      const std::uint64_t seed = options_.first_seed + i;
      board.seed = seed;
      if (options_.isolated) alarm(kRunSecondsMax);
      run_one(make_, seed, plan_of(make_, seed), board);
      if (board.failed) return;
    }
    if (options_.isolated) alarm(0);
  }

  // What goes wrong with these moves, or "".
  std::string failure_of(const Moves& moves, bool quiet) const {
    SharedBoard board;
    const auto work = [&] {
      if (options_.isolated) alarm(kRunSecondsMax);
      run_one(make_, report_.failing_seed, moves, *board);
    };
    std::string death;
    if (options_.isolated) {
      death = in_child(work, quiet);
    } else {
      work();
    }
    return death.empty() ? std::string(board->words) : death;
  }

  // Leaves out as many moves as it can while the run still fails.
  Moves shrink(Moves moves) const {
    std::size_t runs = 0;
    const auto still_fails = [&](const Moves& fewer) {
      return ++runs <= kShrinkRunsMax && !failure_of(fewer, true).empty();
    };
    for (std::size_t chunk = moves.size() / 2; chunk > 0;) {
      bool left_out = false;
      for (std::size_t at = 0; at < moves.size();) {
        Moves fewer = moves;
        const auto begin = fewer.begin() + static_cast<std::ptrdiff_t>(at);
        const auto end =
            fewer.begin() + static_cast<std::ptrdiff_t>(std::min(at + chunk, moves.size()));
        fewer.erase(begin, end);
        if (still_fails(fewer)) {
          moves = std::move(fewer);
          left_out = true;
        } else {
          at += chunk;
        }
      }
      if (!left_out || chunk > 1) chunk /= 2;
    }
    for (SimulationMove& move : moves) {  // where it is not needed, nothing comes between
      const std::uint64_t choices = std::exchange(move.choices, 0);
      if (choices != 0 && !still_fails(moves)) move.choices = choices;
    }
    return moves;
  }

  void tell(const Moves& moves) {
    const std::unique_ptr<SimulationStory> story = make_(report_.failing_seed);
    std::string words = fmt::format("seed {}: {}", report_.failing_seed, failure_of(moves, false));
    words += "\nIt happens in these moves (of the seed's, those that matter):\n";
    for (std::size_t i = 0; i < moves.size(); ++i) {
      words += fmt::format("  {:3}. {}\n", i + 1, in_words(moves[i], *story));
    }
    report_.failure = std::move(words);
  }

  const MakeSimulation& make_;
  const SimulationOptions& options_;
  SimulationReport report_;
};

}  // namespace

SimulationReport simulate(const MakeSimulation& make, const SimulationOptions& options) {
  return Simulation(make, options).run();
}

}  // namespace pv2::testing
