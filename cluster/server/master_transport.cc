// SPDX-License-Identifier: Apache-2.0
//
// A stream to the master knows the address that it was made for. When the master is elsewhere, the
// stream tells its listener that it is over.

#include "server/master_transport.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace pv2::cluster {

/// Used on the loop only.
struct MasterTransport::Streams {
  std::vector<Followed*> open;  ///< In the order in which they came.
  bool is_looking = false;
};

class MasterTransport::Followed final : public Stream, public StreamListener {
 public:
  Followed(std::unique_ptr<Stream> stream, std::string address, std::shared_ptr<Streams> streams)
      : stream_(std::move(stream)), address_(std::move(address)), streams_(std::move(streams)) {
    streams_->open.push_back(this);
  }
  ~Followed() override { std::erase(streams_->open, this); }

  [[nodiscard]] const std::string& address() const noexcept { return address_; }
  /// The master is elsewhere. The listener may destroy this object.
  void cut() {
    std::erase(streams_->open, this);
    if (listener_ == nullptr) return;
    stream_.reset();
    listener_->on_closed({StatusCode::kUnavailable, "the master is not at " + address_ + " now"});
  }

  // Stream
  void start(StreamListener& listener) override {
    listener_ = &listener;
    stream_->start(*this);
  }
  void send(std::string& bytes) override {
    if (stream_ != nullptr) return stream_->send(bytes);
    bytes.clear();
  }
  [[nodiscard]] std::size_t unsent() const noexcept override {
    return stream_ == nullptr ? 0 : stream_->unsent();
  }
  void pause() override {
    if (stream_ != nullptr) stream_->pause();
  }
  void resume() override {
    if (stream_ != nullptr) stream_->resume();
  }
  [[nodiscard]] std::string peer() const override { return address_; }

  // StreamListener
  void on_bytes(std::string_view bytes) override { listener_->on_bytes(bytes); }
  void on_drained() override { listener_->on_drained(); }
  void on_closed(const Status& why) override { listener_->on_closed(why); }

 private:
  std::unique_ptr<Stream> stream_;
  const std::string address_;
  const std::shared_ptr<Streams> streams_;
  StreamListener* listener_ = nullptr;
};

MasterTransport::MasterTransport(std::shared_ptr<Transport> below, FindMaster find,
                                 WorkQueue* looks)
    : below_(std::move(below)),
      find_(std::move(find)),
      looks_(looks),
      streams_(std::make_shared<Streams>()) {}
MasterTransport::~MasterTransport() = default;

void MasterTransport::look(std::function<void(const Result<std::string>&)> found) const {
  if (looks_ == nullptr) return found(find_());
  looks_->run([find = find_, below = below_, found = std::move(found)] {
    below->post([found, address = find()] { found(address); });
  });
}

void MasterTransport::look_again() {
  // A disk that hangs does not collect looks.
  if (std::exchange(streams_->is_looking, true)) return;
  look([streams = streams_](const Result<std::string>& address) {
    streams->is_looking = false;
    if (!address.ok()) return;  // it may come back there
    std::vector<Followed*> left;
    for (Followed* const stream : streams->open) {
      if (stream->address() != *address) left.push_back(stream);
    }
    for (Followed* const stream : left) {
      if (std::ranges::find(streams->open, stream) != streams->open.end()) stream->cut();
    }
  });
}

void MasterTransport::connect(std::string_view address, Duration timeout, Connected connected) {
  if (address != kMasterAddress) return below_->connect(address, timeout, std::move(connected));
  const auto shared = std::make_shared<Connected>(std::move(connected));
  look([below = below_, streams = streams_, timeout, shared](const Result<std::string>& master) {
    if (!master.ok() || master->empty()) {
      const Status why = master.ok()
                             ? Status(StatusCode::kUnavailable, "no master has an address yet")
                             : master.status().with_context("where the master is");
      return below->post([shared, why] {
        (*shared)(Status(StatusCode::kUnavailable, std::string(why.message())));
      });
    }
    below->connect(
        *master, timeout, [streams, at = *master, shared](Result<std::unique_ptr<Stream>> stream) {
          if (!stream.ok()) return (*shared)(stream.status());
          (*shared)(
              std::unique_ptr<Stream>(std::make_unique<Followed>(*std::move(stream), at, streams)));
        });
  });
}

}  // namespace pv2::cluster
