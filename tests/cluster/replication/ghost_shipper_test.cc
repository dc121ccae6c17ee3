// SPDX-License-Identifier: Apache-2.0
//
// A ghost that ships: a server stops while it is shipping, as after SIGSTOP, and hears nothing. It
// is taken for dead, its regions are recovered and its queue is claimed. Then it goes on where it
// was: it sends what it had read, and records its position. The story is told for every step of the
// shipping at which the server can stop.
//
// What has to hold: nothing is lost; an edit that comes late or twice does not show, because the
// version beside the cell is newer; the position of the claimed queue never goes back and is never
// replaced, and the ghost has no queue of its own any more.

#include <algorithm>
#include <optional>

#include "cluster/replication/replication_world.h"
#include "replication/queue_files.h"
#include "storage/peer_files.h"

namespace pv2::testing::ghost_shipper_test {
namespace {

using namespace pv2::testing::replication_world;  // NOLINT: of the test
using namespace std::chrono_literals;

/// When the ghost goes on.
enum class Return {
  kClaimed,  ///< Its queue is claimed, and nothing of it has been shipped by the claimer.
  kShipped,  ///< The claimer has shipped all of it, and newer writes too.
};

/// What the ghosts of several stories have done after their return.
struct Deeds {
  int stories = 0;
  int sent = 0;      ///< Wrote into the other cluster.
  int recorded = 0;  ///< Tried to record a position: gave the queue up.
};

class Story {
 public:
  explicit Story(Return when) : when_(when) {
    world_.add_peer();
    for (const char* row : {"a", "b", "n", "z"}) REQUIRE(world_.put(row, "old").ok());
    REQUIRE(world_.put("n", "1").ok());
    world_.run_until_shipped();  // now the servers know where the region is in the target
    for (const ServerName& server : source_.servers()) {
      const auto regions = source_.regions_on(server);
      if (std::ranges::any_of(regions, [](const auto& each) { return each.table == kTable; })) {
        ghost_ = server;
      }
    }
    // The clock stands still during these writes. A server ships when its timer goes off, so the
    // ghost has shipped none of them.
    REQUIRE(world_.put("a", "1").ok());
    REQUIRE(world_.remove("b").ok());
    REQUIRE(world_.write({.kind = MutationKind::kIncrement, .row = "n", .amount = 5}).ok());
    REQUIRE(world_.put("z", "1").ok());
    REQUIRE(own_queue()->bytes_behind > 0);
    first_position_ = stored_by_ghost();
  }

  /// The ghost stops after so many steps. False: it had shipped everything by then.
  bool stop_after(int steps) {
    source_.stop_server(ghost_);
    for (int i = 0; i < steps; ++i) {
      while (!step()) source_.transport->run_for(50ms);
      if (own_queue()->bytes_behind == 0) return false;
    }
    return true;
  }

  void be_taken_for_dead() {
    const bool is_recorded = stored_by_ghost() != first_position_;
    const auto servers = target_.servers();
    if (when_ == Return::kClaimed) {
      for (const ServerName& server : servers) target_.stop_server(server);
    }
    source_.run_for(15s);
    source_.run_until_quiet();
    source_.run_for(5s);
    REQUIRE(source_.servers().size() == 3);  // one of them does not know that it is dead
    // Of a queue that is shipped to its end nothing is left.
    REQUIRE(position().has_value() == (when_ == Return::kClaimed && !is_recorded));
    if (when_ == Return::kShipped) {
      write_more();
      source_.run_for(5s);
      CHECK(world_.rows_of(target_) == newest());
    }
    for (const ServerName& server : servers) target_.resume_server(server);
  }

  /// The ghost does everything that it can, and the others do too, until it hears that it is dead.
  void go_on(Deeds& deeds) {
    ++deeds.stories;
    const std::uint64_t requests = requests_at_target();
    bool has_given_up = false;
    for (int i = 0; i < 10'000 && is_alive(); ++i) {
      if (!step()) source_.transport->run_for(50ms);
      check_queues();
      has_given_up |= is_alive() && !own_queue();
    }
    REQUIRE_FALSE(is_alive());
    deeds.recorded += has_given_up ? 1 : 0;
    source_.run_for(5s);
    // Nobody else writes there.
    if (when_ == Return::kShipped) deeds.sent += requests_at_target() > requests ? 1 : 0;
  }

  void check_end() {
    if (when_ == Return::kClaimed) write_more();
    world_.run_until_shipped();
    check_queues();
    CHECK(world_.rows_of(target_) == newest());
    CHECK(world_.rows_of(source_) == newest());
    CHECK(source_.disorder().empty());
    CHECK(target_.disorder().empty());
  }

 private:
  static Rows newest() { return {{"b", "2"}, {"n", "9"}, {"z", "1"}}; }
  /// Newer than what the ghost ships: each of its edits would show.
  void write_more() {
    REQUIRE(world_.remove("a").ok());
    REQUIRE(world_.put("b", "2").ok());
    REQUIRE(world_.write({.kind = MutationKind::kIncrement, .row = "n", .amount = 3}).ok());
  }

  [[nodiscard]] bool is_alive() const {
    const auto servers = source_.servers();
    return std::ranges::find(servers, ghost_) != servers.end();
  }
  /// The ghost does one thing, then the others do all that they can. False: it had nothing to do.
  bool step() {
    const bool did_something = source_.step_server(ghost_);
    source_.settle();
    return did_something;
  }
  /// As the ghost sees it; none: it has given it up.
  [[nodiscard]] std::optional<cluster::QueueStatus> own_queue() const {
    for (const auto& peer : source_.status_of(ghost_).peers) {
      for (const auto& queue : peer.queues) {
        if (queue.owner == ghost_) return queue;
      }
    }
    return std::nullopt;
  }
  /// Before the claim.
  [[nodiscard]] cluster::LogPosition stored_by_ghost() const {
    const auto own = files_.queues(kPeer, ghost_);
    REQUIRE((own.ok() && own->size() == 1));
    return own->front().position;
  }
  /// Of the ghost's queue, wherever it is stored.
  [[nodiscard]] std::optional<cluster::LogPosition> position() const {
    const auto all = files_.all();
    REQUIRE(all.ok());
    std::optional<cluster::LogPosition> found;
    for (const auto& queue : *all) {
      if (queue.owner != ghost_) continue;
      CHECK(to_string(queue.server) != to_string(ghost_));
      CHECK_FALSE(found);
      found = queue.position;
    }
    return found;
  }
  void check_queues() {
    const auto directories = files_.directories();
    REQUIRE(directories.ok());
    for (const auto& [peer, server] : *directories) CHECK(to_string(server) != to_string(ghost_));
    const auto now = position();
    // Whoever has claimed it records its own progress, and removes it at its end.
    if (is_checked_) CHECK((!now || (last_ && *last_ <= *now)));
    last_ = now;
    is_checked_ = true;
  }
  [[nodiscard]] std::uint64_t requests_at_target() {
    std::uint64_t requests = 0;
    for (const auto& server : target_.master().servers().live) requests += server.requests;
    return requests;
  }

  const Return when_;
  // The servers of the target are not taken for dead.
  TwoClusters world_{1, 1, [](ClusterWorld& each) {
                       if (each.layout.root() == "/other") each.lease = 10min;
                     }};
  ClusterWorld& source_ = world_.source;
  ClusterWorld& target_ = world_.target;
  const cluster::QueueFiles files_{source_.files, source_.layout};
  ServerName ghost_;
  cluster::LogPosition first_position_;
  bool is_checked_ = false;
  std::optional<cluster::LogPosition> last_;
};

Deeds tell(Return when) {
  Deeds deeds;
  for (int steps = 0;; ++steps) {
    INFO("the ghost stops after " << steps << " steps");
    Story story(when);
    if (!story.stop_after(steps)) return deeds;
    story.be_taken_for_dead();
    story.go_on(deeds);
    story.check_end();
  }
}

}  // namespace

TEST_CASE("a ghost goes on shipping a queue that was claimed: the position stays the claimer's") {
  const Deeds deeds = tell(Return::kClaimed);
  CHECK(deeds.stories > 5);
  CHECK(deeds.recorded > 0);
}

TEST_CASE("a ghost ships what the claimer has shipped, and newer writes stay") {
  const Deeds deeds = tell(Return::kShipped);
  CHECK(deeds.stories > 5);
  CHECK(deeds.sent > 0);
  CHECK(deeds.recorded > 0);
}

}  // namespace pv2::testing::ghost_shipper_test
