// SPDX-License-Identifier: Apache-2.0
//
// RegionNonces: what a server remembers of operations with nonces: one memory for the regions of
// users, and one for the catalogue's region. So users who fill theirs, which makes the server
// refuse their writes until old nonces are forgotten, do not stop the catalogue.

#pragma once

#include <pv2/idempotency/server_nonce_manager.h>
#include <pv2/procedures/table.h>

#include <memory>
#include <utility>

namespace pv2::cluster {

/// Thread-safe. The managers are shared with writes that are under way.
class RegionNonces {
 public:
  /// `options` are those for users; the catalogue's has the usual memory.
  explicit RegionNonces(const NonceManagerOptions& options)
      : users_(std::make_shared<ServerNonceManager>(options)),
        catalogue_(std::make_shared<ServerNonceManager>(
            NonceManagerOptions{.clock = options.clock, .retention = options.retention})) {}

  [[nodiscard]] const std::shared_ptr<ServerNonceManager>& of(const TableName& table) const {
    return is_meta(table) ? catalogue_ : users_;
  }
  [[nodiscard]] std::pair<ServerNonceManager&, ServerNonceManager&> all() const {
    return {*users_, *catalogue_};
  }
  void stop() {
    users_->stop();
    catalogue_->stop();
  }

 private:
  const std::shared_ptr<ServerNonceManager> users_;
  const std::shared_ptr<ServerNonceManager> catalogue_;
};

}  // namespace pv2::cluster
