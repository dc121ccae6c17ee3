// SPDX-License-Identifier: Apache-2.0
//
// ShellProcess: pv2-shell itself, with pipes for a program: a statement goes in, and one JSON
// object comes back. It has a cluster of its own unless it is told to join one.

#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.h"

extern char** environ;

namespace pv2::testing {

/// Longer than anything takes on a busy machine.
inline constexpr int kPatienceMs = 120'000;

/// One answer of the shell, as it was printed.
struct JsonAnswer {
  std::string text;

  [[nodiscard]] bool has(std::string_view part) const {
    return text.find(part) != std::string::npos;
  }
  [[nodiscard]] bool ok() const { return has("\"ok\":true"); }
  [[nodiscard]] bool is(std::string_view outcome) const {
    return has("\"outcome\":\"" + std::string(outcome) + "\"");
  }
  [[nodiscard]] bool failed_with(std::string_view code) const {
    return has("\"error\":{\"code\":\"" + std::string(code) + "\"");
  }
  /// The value of a text or number, as it is written; empty: there is none.
  [[nodiscard]] std::string value(const std::string& name) const {
    std::smatch found;
    const std::regex member("\"" + name + "\":(?:\"((?:[^\"\\\\]|\\\\.)*)\"|([0-9]+))");
    if (!std::regex_search(text, found, member)) return {};
    return found[1].matched ? found[1].str() : found[2].str();
  }
};

/// Owned by one thread.
class ShellProcess {
 public:
  /// What it prints to stderr is the test's, unless `errors` names a file. What it prints to stdout
  /// is read by the test, unless `output` names a file.
  explicit ShellProcess(std::vector<std::string> options, const std::string& errors = {},
                        const std::string& output = {}) {
    int to[2];
    int from[2];
    REQUIRE(::pipe2(to, O_CLOEXEC) == 0);
    REQUIRE(::pipe2(from, O_CLOEXEC) == 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, to[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, from[1], STDOUT_FILENO);
    if (!output.empty()) {
      posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(), O_WRONLY, 0600);
    }
    if (!errors.empty()) {
      posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, errors.c_str(),
                                       O_WRONLY | O_CREAT | O_APPEND, 0600);
    }
    options.insert(options.begin(), "pv2-shell");
    std::vector<char*> argv;
    for (std::string& option : options) argv.push_back(option.data());
    argv.push_back(nullptr);
    REQUIRE(::posix_spawn(&pid_, PV2_SHELL, &actions, nullptr, argv.data(), environ) == 0);
    posix_spawn_file_actions_destroy(&actions);
    ::close(to[0]);
    ::close(from[1]);
    input_ = to[1];
    output_ = from[0];
    std::signal(SIGPIPE, SIG_IGN);
  }
  /// Talks JSON, and goes on after failures.
  static ShellProcess talking(std::vector<std::string> more = {}) {
    std::vector<std::string> options{"--json", "--keep-going", "-f", "-"};
    options.insert(options.end(), more.begin(), more.end());
    return ShellProcess(std::move(options));
  }
  ~ShellProcess() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      end();
    }
    ::close(output_);
  }
  ShellProcess(const ShellProcess&) = delete;
  ShellProcess& operator=(const ShellProcess&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }

  JsonAnswer ask(const std::string& statement) {
    write(statement + "\n");
    JsonAnswer answer{read_line()};
    INFO(statement << "\n" << answer.text);
    REQUIRE(answer.text.starts_with("{\"statement\":"));
    REQUIRE(answer.text.ends_with("}"));
    return answer;
  }
  /// Asks what has to be done.
  JsonAnswer must(const std::string& statement) {
    JsonAnswer answer = ask(statement);
    INFO(answer.text);
    REQUIRE(answer.ok());
    return answer;
  }

  void write(const std::string& text) {
    REQUIRE(::write(input_, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
  std::string read_line() {
    while (buffer_.find('\n') == std::string::npos && fill()) continue;
    const std::size_t end = buffer_.find('\n');
    std::string line = buffer_.substr(0, end);
    buffer_.erase(0, end == std::string::npos ? end : end + 1);
    return line;
  }
  std::string read_all() {
    while (fill()) continue;
    return std::exchange(buffer_, {});
  }

  /// Ends its input, and returns its exit code; -1: a signal ended it.
  int end() {
    if (input_ >= 0) ::close(input_);
    input_ = -1;
    int how = 0;
    REQUIRE(::waitpid(pid_, &how, 0) == pid_);
    pid_ = -1;
    return WIFEXITED(how) ? WEXITSTATUS(how) : -1;
  }

 private:
  bool fill() {
    pollfd readable{output_, POLLIN, 0};
    REQUIRE(::poll(&readable, 1, kPatienceMs) == 1);
    char block[4096];
    const ssize_t got = ::read(output_, block, sizeof block);
    if (got <= 0) return false;
    buffer_.append(block, static_cast<std::size_t>(got));
    return true;
  }

  pid_t pid_ = -1;
  int input_ = -1;
  int output_ = -1;
  std::string buffer_;
};

/// What /proc says of a process or thread in its folder, from its state on: "S 4711 ...". Empty: it
/// is gone.
inline std::string stat_of(const std::filesystem::path& folder) {
  std::ifstream file(folder / "stat");
  std::string stat;
  std::getline(file, stat);
  const std::size_t end = stat.rfind(") ");  // after the name of the program
  return end == std::string::npos ? std::string() : stat.substr(end + 2);
}

/// Stops a process, and waits until none of its threads runs any more: on a busy machine the others
/// go on until the first one has got the signal.
inline void stop_process(pid_t pid) {
  REQUIRE(::kill(pid, SIGSTOP) == 0);
  const std::filesystem::path threads = "/proc/" + std::to_string(pid) + "/task";
  for (bool all_stopped = false; !all_stopped; ::sched_yield()) {
    all_stopped = true;
    for (const auto& thread : std::filesystem::directory_iterator(threads)) {
      all_stopped = all_stopped && stat_of(thread.path()).starts_with("T");
    }
  }
}

/// The children of a process.
inline std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string stat = stat_of(entry.path());
    if (stat.empty()) continue;
    if (std::atoi(stat.c_str() + 2) == parent) children.push_back(std::stoi(name));
  }
  return children;
}

/// Waits until a process that need not be a child of ours has ended; it may be gone already.
inline bool has_ended(pid_t pid) {
  const int handle = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (handle < 0) return true;
  pollfd ended{handle, POLLIN, 0};
  const bool in_time = ::poll(&ended, 1, kPatienceMs) == 1;
  ::close(handle);
  return in_time;
}

}  // namespace pv2::testing
