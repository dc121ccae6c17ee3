// SPDX-License-Identifier: Apache-2.0
//
// How a statement stops waiting, at a signal and at the end of its time, for a master that answers
// nothing.

#include <pv2/base/fields.h>
#include <pv2/cluster/cluster_client.h>
#include <pv2/rpc/rpc_server.h>
#include <pv2/rpc/tcp_transport.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "session/shell.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

namespace pv2::testing::shell_wait_test {
namespace {

using namespace std::chrono_literals;

/// What `pv2.submit` answers.
struct Submitted {
  ProcedureId id{7};
  void fields(auto& f) { f(1, "id", id); }
};

/// Its master accepts each procedure as number 7, and answers nothing else. Whoever is the first to
/// ask it for a list is interrupted meanwhile.
struct World {
  World() {
    std::filesystem::create_directory(root.path("master"));
    std::ofstream(root.path("master/id")) << "id";
    auto opened_transport = tcp_transport();
    REQUIRE(opened_transport.ok());
    transport = *std::move(opened_transport);
    RpcServerOptions options{.transport = transport};
    options.methods["pv2.submit"] = [](IncomingCall call) {
      Submitted answer;
      std::string body;
      encode_fields(answer, FieldSelection::kAll, body);
      call.reply(std::move(body));
    };
    options.methods["pv2.wait"] = [this](IncomingCall call) {
      unanswered.push_back(std::move(call));
    };
    for (const char* const method : {"pv2.list", "master.servers"}) {
      options.methods[method] = [this](IncomingCall call) {
        unanswered.push_back(std::move(call));
        if (interrupts_left-- > 0) std::raise(SIGINT);
      };
    }
    auto opened_master = RpcServer::open(std::move(options));
    REQUIRE(opened_master.ok());
    master = *std::move(opened_master);
    auto opened_client = cluster::ClusterClient::open(
        {.find_master = cluster::master_at(master->address()), .transport = transport});
    REQUIRE(opened_client.ok());
    client = *std::move(opened_client);
  }
  ~World() {
    client.reset();
    master.reset();
  }

  const TemporaryDirectory root;
  const shell::Interrupts interrupts;
  std::shared_ptr<Transport> transport;
  // Used on the loop.
  std::vector<IncomingCall> unanswered;
  int interrupts_left = 1;
  std::unique_ptr<RpcServer> master;
  std::unique_ptr<cluster::ClusterClient> client;
};

}  // namespace

TEST_CASE("the call of a statement that gives up is not sent any more") {
  World world;
  shell::Shell shell(*world.client, world.root.path(""), nullptr);
  std::promise<Status> end;

  const auto answer = shell.ask<ProcedureResult>(
      [&](const ResultCallback& /*done*/) {
        return shell.executor().wait(ProcedureId{1}, 5s, [&](const Result<ProcedureResult>& told) {
          end.set_value(told.status());
        });
      },
      0s);

  CHECK(answer.status().code() == StatusCode::kDeadlineExceeded);
  CHECK(end.get_future().get().code() == StatusCode::kAborted);
}

TEST_CASE("a signal that ends the shell ends a statement that begins after it") {
  World world;
  shell::Shell shell(*world.client, world.root.path(""), nullptr);

  std::raise(GENERATE(SIGTERM, SIGHUP));
  const shell::Answer answer = shell.answer("wait 1, TIMEOUT => 2");

  CHECK(answer.status.code() == StatusCode::kAborted);
  CHECK(shell.has_ended());
}

TEST_CASE("Ctrl-C ends the wait for a lock whatever it waits for just then") {
  World world;
  shell::Shell shell(*world.client, world.root.path(""), nullptr);

  const shell::Answer answer = shell.answer("lock_table 't', TIMEOUT => 5");

  CHECK(answer.outcome == shell::Outcome::kRunning);
  CHECK(answer.status.code() == StatusCode::kAborted);
  CHECK(answer.again.starts_with("lock_table 't'"));
}

TEST_CASE("Ctrl-C ends a statement that asks several questions at the first one") {
  World world;
  shell::Shell shell(*world.client, world.root.path(""), nullptr);

  // 'beef' may be the name of a table, or begin the id of a region.
  const shell::Answer answer = shell.answer(GENERATE("check", "flush 'beef'", "list_peers"));

  CHECK(answer.status.code() == StatusCode::kAborted);
}

}  // namespace pv2::testing::shell_wait_test
