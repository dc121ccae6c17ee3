// SPDX-License-Identifier: Apache-2.0
//
// ClusterLayout: the names of all paths below the root of a cluster. Nothing else builds a path.
//
//     master/procedures/, state, lock, address    the master's own
//     master/id                                   the name of the cluster among clusters
//     data/<namespace>/<table>/.descriptors/<n>   versions of the descriptor, in a directory of
//                                                 their own: a table may have 10 000 regions, and
//                                                 each opening looks for the latest version
//     data/<namespace>/<table>/<region>/region    RegionInfo
//     data/<namespace>/<table>/<region>/files.<n> which store files count (region_files.h)
//     data/<namespace>/<table>/<region>/f<n>-<m>  store files: opening, number
//     data/<namespace>/<table>/<region>/recovered/<log>
//     archive/<namespace>/<table>/<region>/f<n>-<m>
//     wals/<server>/u<n>, m<n>                    logs of users' regions, of meta's region
//     wals/<server>-splitting/                    the same directory after the fence
//     oldwals/<server>,<log>                      a log that its server needed no more
//     oldwals/<server>,<log>,<bytes>              a log of a dead server; what follows the first
//                                                 <bytes> was never acknowledged
//     peers/<peer>/
//     queues/<peer>/<server>/<owner>              how far the server has shipped the logs of the
//                                                 owner (itself, or a dead server) to a peer
//
// A name that a user chose is encoded: letters, digits, '_', '-', ',' and inner dots stay as they
// are, other bytes become %XX. So a path never leaves its directory, and no name is a hidden file.

#pragma once

#include <pv2/procedures/region.h>
#include <pv2/procedures/server.h>
#include <pv2/procedures/table.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace pv2::cluster {

/// Const methods may be called concurrently. A value.
class ClusterLayout {
 public:
  explicit ClusterLayout(std::string root) : root_(std::move(root)) {}

  [[nodiscard]] const std::string& root() const noexcept { return root_; }
  [[nodiscard]] std::string master() const { return root_ + "/master"; }
  /// The file that the master writes its address into: "127.0.0.1:40112".
  [[nodiscard]] std::string master_address() const { return master() + "/address"; }
  /// The file with the cluster's id, which the first master makes.
  [[nodiscard]] std::string cluster_id() const { return master() + "/id"; }
  [[nodiscard]] std::string peers() const { return root_ + "/peers"; }
  [[nodiscard]] std::string peer(std::string_view id) const;
  [[nodiscard]] std::string queues() const { return root_ + "/queues"; }
  /// The queues of all servers for a peer, and that of one server.
  [[nodiscard]] std::string queues(std::string_view peer) const;
  [[nodiscard]] std::string queue(std::string_view peer, const ServerName& server) const;
  /// How far `server` has shipped the logs of `owner`.
  [[nodiscard]] std::string queue_position(std::string_view peer, const ServerName& server,
                                           const ServerName& owner) const;

  [[nodiscard]] std::string data() const { return root_ + "/data"; }
  [[nodiscard]] std::string name_space(std::string_view name) const;
  [[nodiscard]] std::string table(const TableName& table) const;
  [[nodiscard]] std::string descriptors(const TableName& table) const;
  [[nodiscard]] std::string descriptor(const TableName& table, std::uint64_t version) const;
  [[nodiscard]] std::string region(const TableName& table, std::string_view region) const;
  [[nodiscard]] std::string region_info(const TableName& table, std::string_view region) const;
  [[nodiscard]] std::string region_files(const TableName& table, std::string_view region,
                                         std::uint64_t opening) const;
  [[nodiscard]] std::string store_file(const TableName& table, std::string_view region,
                                       std::string_view file) const;
  [[nodiscard]] std::string recovered(const TableName& table, std::string_view region) const;
  [[nodiscard]] std::string recovered_file(const TableName& table, std::string_view region,
                                           std::string_view name) const;

  [[nodiscard]] std::string archive(const TableName& table, std::string_view region) const;
  [[nodiscard]] std::string archived_file(const TableName& table, std::string_view region,
                                          std::string_view file) const;

  [[nodiscard]] std::string wals() const { return root_ + "/wals"; }
  [[nodiscard]] std::string wals(const ServerName& server) const;
  [[nodiscard]] std::string splitting(const ServerName& server) const;
  [[nodiscard]] std::string old_wals() const { return root_ + "/oldwals"; }
  /// One log everywhere: "rs1,17,u3".
  [[nodiscard]] static std::string log_name(const ServerName& server, std::string_view log);
  [[nodiscard]] std::string old_wal(const ServerName& server, std::string_view log) const;
  /// Of a dead server: the first `bytes` of it were split.
  [[nodiscard]] std::string old_wal(const ServerName& server, std::string_view log,
                                    std::uint64_t bytes) const;

  // What a name in a directory is; no value when it is something else.
  /// Whether it is the directory of the descriptors, in the directory of a table.
  [[nodiscard]] static bool is_descriptors(std::string_view name);
  [[nodiscard]] static std::optional<std::uint64_t> parse_descriptor(std::string_view name);
  [[nodiscard]] static std::optional<std::uint64_t> parse_region_files(std::string_view name);
  /// The opening that wrote a store file, or a draft of one.
  [[nodiscard]] static std::optional<std::uint64_t> parse_store_file(std::string_view name);
  struct LogDirectory {
    ServerName server{};
    bool is_fenced = false;
  };
  [[nodiscard]] static std::optional<LogDirectory> parse_log_directory(std::string_view name);

  /// A log in oldwals/.
  struct OldLog {
    ServerName server{};
    char kind = 0;  ///< The first letter of the log's name.
    std::uint64_t number = 0;
    std::optional<std::uint64_t> bytes{};  ///< No value: the whole file.
  };
  [[nodiscard]] static std::optional<OldLog> parse_old_wal(std::string_view name);

  [[nodiscard]] static std::string store_file_name(std::uint64_t opening, std::uint64_t number);
  [[nodiscard]] static std::string encode_name(std::string_view name);
  [[nodiscard]] static std::string decode_name(std::string_view encoded);

 private:
  std::string root_;
};

}  // namespace pv2::cluster
