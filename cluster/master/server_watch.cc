// SPDX-License-Identifier: Apache-2.0
//
// The lease is looked at several times in its length.

#include "master/server_watch.h"

#include <pv2/base/fields.h>
#include <pv2/engine/async_executor.h>
#include <pv2/procedures/server_crash.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "wire/server_messages.h"

namespace pv2::cluster {
namespace {

constexpr int kLooksPerLease = 10;
constexpr Duration kSubmitPause = std::chrono::milliseconds(200);

// Under which a crash is submitted again when `nonce` is used up. 0 is no nonce.
Nonce after(const Nonce& nonce) {
  return {.group = nonce.group, .value = std::max<std::uint64_t>(nonce.value + 1, 1)};
}

}  // namespace

void ServerWatch::start(const std::vector<ServerName>& expected) {
  expect(expected);
  for (const auto& [server, kept] : parts_.catalogue.rows().servers()) {
    if (is_dead(kept.row.state) && kept.row.state != ServerState::kRetired) {
      crash(server, "it is recorded as " + std::string(to_string(kept.row.state)));
    }
  }
  look();
}

void ServerWatch::expect(const std::vector<ServerName>& servers) {
  for (const ServerName& server : servers) {
    const ServerState state = parts_.catalogue.rows().server(server).state;
    if (!is_dead(state)) parts_.registry.expect(server, tasks_.now());
  }
}

void ServerWatch::look() {
  if (Status bad = parts_.executor.health(); !bad.ok()) return events_.on_fatal(bad);
  parts_.registry.look(tasks_.now());
  tasks_.after(parts_.registry.lease() / kLooksPerLease, [this] { look(); });
}

void ServerWatch::take(IncomingCall call) {
  Heartbeat heartbeat;
  if (Status bad = decode_fields(heartbeat, FieldSelection::kAll, call.body()); !bad.ok()) {
    return call.fail(bad);
  }
  // A name that cannot be the name of a directory could never be fenced.
  if (Status bad = check_server_name(heartbeat.server); !bad.ok()) return call.fail(bad);
  HeartbeatReply reply{.epoch = epoch_, .lease = parts_.registry.lease()};
  const bool is_new = !parts_.registry.lives(heartbeat.server);
  reply.dead = is_dead(parts_.catalogue.rows().server(heartbeat.server).state) ||
               !parts_.registry.heard(heartbeat, tasks_.now());
  if (is_new && !reply.dead && !heartbeat.leaving) {
    events_.notice("server " + to_string(heartbeat.server) + " listens at " + heartbeat.address);
    // A host that starts again has lost its last server, even if that was a moment ago.
    for (const ServerName& other : parts_.registry.known()) {
      if (other.host == heartbeat.server.host && other.start_code < heartbeat.server.start_code) {
        parts_.registry.give_up(other, "its host has started another one");
      }
    }
    events_.came(heartbeat.server);
  }
  if (heartbeat.leaving && !reply.dead) {
    parts_.registry.give_up(heartbeat.server, "it has closed its regions and ends");
  }
  std::string body;
  encode_fields(reply, FieldSelection::kAll, body);
  call.reply(std::move(body));
}

void ServerWatch::crash(const ServerName& server, const std::string& why) {
  events_.notice("server " + to_string(server) + " is taken for dead: " + why);
  submit(server, crash_nonce(server));
}

void ServerWatch::submit(const ServerName& server, Nonce nonce) {
  const auto meta = parts_.catalogue.rows().region(meta_region().id);
  const bool has_meta = meta && meta->server == server;
  parts_.executor.async().submit(
      ServerCrash(parts_.ports, server, has_meta ? Priority::kMeta : Priority::kHigh),
      {.nonce = nonce, .owner = "master"},
      [this, server, nonce, post = tasks_.poster()](const Result<Submitted>& submitted) {
        if (submitted.status().code() == StatusCode::kStopping) return;
        post([this, server, nonce, submitted] {
          if (!submitted.ok()) {
            // Under another owner, for instance, the nonce is of another submission.
            const bool is_taken = submitted.status().code() == StatusCode::kKeyReused;
            tasks_.after(kSubmitPause, [this, server, nonce = is_taken ? after(nonce) : nonce] {
              submit(server, nonce);
            });
          } else if (submitted->replayed) {
            look_after(server, nonce, submitted->id);
          }
        });
      });
}

void ServerWatch::look_after(const ServerName& server, Nonce nonce, ProcedureId crash) {
  parts_.executor.async().wait(
      crash, [this, server, nonce, post = tasks_.poster()](const Result<ProcedureResult>& result) {
        if (!result.ok() || result->status.ok()) return;  // this master stops, or all is well
        // An operator has ended it, and may have mended the cause since.
        post([this, server, nonce] { submit(server, after(nonce)); });
      });
}

}  // namespace pv2::cluster
