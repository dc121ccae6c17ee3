// SPDX-License-Identifier: Apache-2.0
//
// Where the parts of the small cluster lie on disk:
//
//     <cluster>/catalogue.journal     the catalogue (catalogue_journal.h)
//     <cluster>/tables/               the table directories (table_directories.h)
//     <cluster>/servers/<name>        a registered region server: its port
//     <cluster>/fenced/<name>         the port of a server that must not serve any more
//     <cluster>/opened/<name>         what that server did: one line per opening or closing
//
// <name> is to_string(ServerName). Nothing here is cached.

#pragma once

#include <pv2/base/status.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "pv2/procedures/server.h"

namespace pv2 {

/// Paths and registrations. Const methods may be called concurrently, also by several processes.
class ClusterDirectory {
 public:
  explicit ClusterDirectory(std::filesystem::path root) : root_(std::move(root)) {}

  [[nodiscard]] std::filesystem::path journal() const { return root_ / "catalogue.journal"; }
  [[nodiscard]] std::filesystem::path tables() const { return root_ / "tables"; }
  [[nodiscard]] std::filesystem::path opened(const ServerName& name) const {
    return root_ / "opened" / to_string(name);
  }

  Status make() const;

  Status register_server(const ServerName& name, std::uint16_t port) const;
  /// From here on the server is not registered, which it notices itself. OK also for a name that is
  /// not registered.
  Status unregister_server(const ServerName& name) const;
  [[nodiscard]] bool is_registered(const ServerName& name) const;
  [[nodiscard]] Result<std::vector<ServerName>> registered() const;
  /// The port of a server, even of a fenced one; kNotFound when there never was such a server.
  [[nodiscard]] Result<std::uint16_t> port(const ServerName& name) const;

  /// How often each line occurs in the files under opened/: what region servers did, by effect key.
  [[nodiscard]] Result<std::map<std::string, unsigned>> server_effects() const;

 private:
  [[nodiscard]] std::filesystem::path registration(const ServerName& name) const {
    return root_ / "servers" / to_string(name);
  }
  [[nodiscard]] std::filesystem::path fence(const ServerName& name) const {
    return root_ / "fenced" / to_string(name);
  }

  std::filesystem::path root_;
};

}  // namespace pv2
