// SPDX-License-Identifier: Apache-2.0
//
// The process of a region server. One request per connection, one line each way:
//
//     OPEN <server> <effect key> <region id> <last sequence>
//          -> DONE <open sequence>, or REFUSED <reason>
//     CLOSE <server> <effect key> <region id>
//          -> DONE 0, or REFUSED <reason>
//     LIST <server>
//          -> REGIONS {<region id>=<open sequence>}
//     STOP <server>
//          -> (the connection ends with the process)
//
// A request that names another server is answered STRANGER, because a port can later belong to
// another server. The same effect key always gets the same answer, and its effect happens once.

#include "pv2/procedures/region_server.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <istream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

#include "cluster/cluster_directory.h"

namespace pv2 {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

// How often the server checks that it is still registered: one that was declared dead serves no
// longer than this.
constexpr auto kLease = std::chrono::milliseconds(50);

/// The state of one server. Owned by the thread that runs its io_context.
class RegionServer {
 public:
  RegionServer(asio::io_context& io, const RegionServerOptions& options)
      : name_(options.name),
        directory_(options.cluster),
        acceptor_(io, tcp::endpoint(asio::ip::address_v4::loopback(), 0)),
        lease_(io),
        opened_(::open(directory_.opened(name_).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
                       0644)) {}
  ~RegionServer() { ::close(opened_); }
  RegionServer(const RegionServer&) = delete;
  RegionServer& operator=(const RegionServer&) = delete;

  Status start() {
    if (opened_ < 0) {
      return {StatusCode::kIoError, "cannot open " + directory_.opened(name_).string()};
    }
    const std::uint16_t port = acceptor_.local_endpoint().port();
    if (Status bad = directory_.register_server(name_, port); !bad.ok()) return bad;
    accept();
    watch_lease();
    return {};
  }

 private:
  /// One connection; its pending callbacks own it.
  struct Connection {
    explicit Connection(tcp::socket s) : socket(std::move(s)) {}
    tcp::socket socket;
    asio::streambuf input;
    std::string output;
  };

  void accept() {
    acceptor_.async_accept([this](boost::system::error_code error, tcp::socket socket) {
      if (!error) serve(std::make_shared<Connection>(std::move(socket)));
      accept();
    });
  }

  void serve(std::shared_ptr<Connection> connection) {
    Connection& c = *connection;
    asio::async_read_until(
        c.socket, c.input, '\n', [this, connection](boost::system::error_code error, std::size_t) {
          if (error) return;
          std::istream stream(&connection->input);
          std::string line;
          std::getline(stream, line);
          connection->output = answer(line) + '\n';
          asio::async_write(connection->socket, asio::buffer(connection->output),
                            [connection](boost::system::error_code, std::size_t) {});
        });
  }

  void watch_lease() {
    if (!directory_.is_registered(name_)) std::_Exit(0);
    lease_.expires_after(kLease);
    lease_.async_wait([this](boost::system::error_code) { watch_lease(); });
  }

  std::string answer(const std::string& line) {
    std::istringstream words(line);
    std::string verb, server, key, region;
    std::uint64_t last_sequence = 0;
    words >> verb >> server;
    if (parse_server_name(server) != name_) return "STRANGER " + to_string(name_);
    if (verb == "STOP") std::_Exit(0);
    if (verb == "LIST") return list();
    words >> key >> region;
    if (verb == "OPEN") words >> last_sequence;
    if (!words || (verb != "OPEN" && verb != "CLOSE"))
      return "REFUSED I do not understand: " + line;
    // Not registered any more: it has just been fenced. It may open nothing, and ends without an
    // answer.
    if (!directory_.is_registered(name_)) std::_Exit(0);
    const auto said = answered_.find(key);
    if (said != answered_.end()) return said->second;
    return answered_[key] = verb == "OPEN" ? open(key, region, last_sequence) : close(key, region);
  }

  std::string open(const std::string& key, const std::string& region, std::uint64_t last_sequence) {
    open_[region] = last_sequence + 1;
    note("open " + region + ' ' + key);
    return "DONE " + std::to_string(last_sequence + 1);
  }

  std::string close(const std::string& key, const std::string& region) {
    open_.erase(region);
    note("close " + region + ' ' + key);
    return "DONE 0";
  }

  std::string list() const {
    std::string text = "REGIONS";
    for (const auto& [region, sequence] : open_) {
      text += ' ' + region + '=' + std::to_string(sequence);
    }
    return text;
  }

  /// Records an effect, to be counted later. Not synced: the record has to survive this process,
  /// not the machine.
  void note(const std::string& effect) const {
    const std::string line = effect + '\n';
    if (::write(opened_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
      std::_Exit(1);
    }
  }

  ServerName name_;
  ClusterDirectory directory_;
  tcp::acceptor acceptor_;
  asio::steady_timer lease_;
  int opened_;
  std::map<std::string, std::uint64_t> open_;
  std::map<std::string, std::string> answered_;  // by effect key
};

}  // namespace

int run_region_server(const RegionServerOptions& options) {
  const pid_t parent = ::getppid();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have ended before the line above took effect.
  if (::getppid() != parent) return 0;
  try {
    asio::io_context io(1);
    RegionServer server(io, options);
    if (Status bad = server.start(); !bad.ok()) {
      std::fprintf(stderr, "region server %s: %s\n", to_string(options.name).c_str(),
                   bad.to_string().c_str());
      return 1;
    }
    std::puts("ready");
    std::fflush(stdout);
    io.run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "region server %s: %s\n", to_string(options.name).c_str(), error.what());
    return 1;
  }
  return 0;
}

}  // namespace pv2
