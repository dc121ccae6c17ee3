// SPDX-License-Identifier: Apache-2.0
//
// Paths of the cluster. A name that a user chose has only encoded bytes, so it is one component.

#include "storage/cluster_layout.h"

#include <fmt/core.h>

#include <charconv>

namespace pv2::cluster {
namespace {

constexpr std::string_view kDescriptors = ".descriptors";
constexpr std::string_view kFilesStem = "files.";
constexpr std::string_view kSplittingEnd = "-splitting";

bool stays(char byte, bool is_first) {
  const bool is_letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
  const bool is_digit = byte >= '0' && byte <= '9';
  return is_letter || is_digit || byte == '_' || byte == '-' || byte == ',' ||
         (byte == '.' && !is_first);
}

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return number;
}

std::optional<std::uint64_t> parse_after(std::string_view stem, std::string_view name) {
  if (!name.starts_with(stem)) return std::nullopt;
  return parse_number(name.substr(stem.size()));
}

}  // namespace

std::string ClusterLayout::encode_name(std::string_view name) {
  if (name.empty()) return "%";
  std::string encoded;
  for (const char byte : name) {
    if (stays(byte, encoded.empty())) {
      encoded += byte;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(byte));
    }
  }
  return encoded;
}

std::string ClusterLayout::decode_name(std::string_view encoded) {
  std::string name;
  for (std::size_t i = 0; i < encoded.size(); ++i) {
    unsigned byte = 0;
    if (encoded[i] != '%') {
      name += encoded[i];
    } else if (i + 2 < encoded.size() &&
               std::from_chars(&encoded[i + 1], &encoded[i + 1] + 2, byte, 16).ec == std::errc()) {
      name += static_cast<char>(byte);
      i += 2;
    }
  }
  return name;
}

std::string ClusterLayout::peer(std::string_view id) const {
  return peers() + "/" + encode_name(id);
}
std::string ClusterLayout::queues(std::string_view peer) const {
  return root_ + "/queues/" + encode_name(peer);
}

std::string ClusterLayout::queue(std::string_view peer, const ServerName& server) const {
  return queues(peer) + "/" + encode_name(to_string(server));
}
std::string ClusterLayout::queue_position(std::string_view peer, const ServerName& server,
                                          const ServerName& owner) const {
  return queue(peer, server) + "/" + encode_name(to_string(owner));
}

std::string ClusterLayout::name_space(std::string_view name) const {
  return data() + "/" + encode_name(name);
}
std::string ClusterLayout::table(const TableName& table) const {
  return name_space(table.name_space) + "/" + encode_name(table.table);
}
std::string ClusterLayout::descriptors(const TableName& table) const {
  return this->table(table) + "/" + std::string(kDescriptors);
}
std::string ClusterLayout::descriptor(const TableName& table, std::uint64_t version) const {
  return fmt::format("{}/{}", descriptors(table), version);
}
std::string ClusterLayout::region(const TableName& table, std::string_view region) const {
  return this->table(table) + "/" + encode_name(region);
}
std::string ClusterLayout::region_info(const TableName& table, std::string_view region) const {
  return this->region(table, region) + "/region";
}
std::string ClusterLayout::region_files(const TableName& table, std::string_view region,
                                        std::uint64_t opening) const {
  return fmt::format("{}/{}{}", this->region(table, region), kFilesStem, opening);
}
std::string ClusterLayout::store_file(const TableName& table, std::string_view region,
                                      std::string_view file) const {
  return this->region(table, region) + "/" + encode_name(file);
}
std::string ClusterLayout::recovered(const TableName& table, std::string_view region) const {
  return this->region(table, region) + "/recovered";
}
std::string ClusterLayout::recovered_file(const TableName& table, std::string_view region,
                                          std::string_view name) const {
  // The name of a log is encoded already.
  return recovered(table, region) + "/" + std::string(name);
}

std::string ClusterLayout::archive(const TableName& table, std::string_view region) const {
  return root_ + "/archive/" + encode_name(table.name_space) + "/" + encode_name(table.table) +
         "/" + encode_name(region);
}
std::string ClusterLayout::archived_file(const TableName& table, std::string_view region,
                                         std::string_view file) const {
  return archive(table, region) + "/" + encode_name(file);
}

std::string ClusterLayout::wals(const ServerName& server) const {
  return wals() + "/" + encode_name(to_string(server));
}
std::string ClusterLayout::splitting(const ServerName& server) const {
  return wals(server) + std::string(kSplittingEnd);
}
std::string ClusterLayout::log_name(const ServerName& server, std::string_view log) {
  return encode_name(to_string(server)) + "," + encode_name(log);
}
std::string ClusterLayout::old_wal(const ServerName& server, std::string_view log) const {
  return old_wals() + "/" + log_name(server, log);
}

std::string ClusterLayout::old_wal(const ServerName& server, std::string_view log,
                                   std::uint64_t bytes) const {
  return fmt::format("{},{}", old_wal(server, log), bytes);
}

std::optional<ClusterLayout::OldLog> ClusterLayout::parse_old_wal(std::string_view name) {
  const auto take_last = [&name] {
    const std::size_t comma = name.rfind(',');
    const std::string_view part = comma == std::string_view::npos ? "" : name.substr(comma + 1);
    name = name.substr(0, comma == std::string_view::npos ? 0 : comma);
    return part;
  };
  OldLog log;
  std::string_view part = take_last();
  if ((log.bytes = parse_number(part))) part = take_last();
  if (part.empty()) return std::nullopt;
  log.kind = part[0];
  const auto number = parse_number(part.substr(1));
  log.server = parse_server_name(decode_name(name));
  if (!number || log.server.empty()) return std::nullopt;
  log.number = *number;
  return log;
}

bool ClusterLayout::is_descriptors(std::string_view name) { return name == kDescriptors; }
std::optional<std::uint64_t> ClusterLayout::parse_descriptor(std::string_view name) {
  return parse_number(name);
}
std::optional<std::uint64_t> ClusterLayout::parse_region_files(std::string_view name) {
  return parse_after(kFilesStem, name);
}
std::optional<std::uint64_t> ClusterLayout::parse_store_file(std::string_view name) {
  const std::size_t dash = name.find('-');
  if (dash == std::string_view::npos || name.empty() || name[0] != 'f') return std::nullopt;
  return parse_number(name.substr(1, dash - 1));
}
std::optional<ClusterLayout::LogDirectory> ClusterLayout::parse_log_directory(
    std::string_view name) {
  LogDirectory directory{.is_fenced = name.ends_with(kSplittingEnd)};
  if (directory.is_fenced) name.remove_suffix(kSplittingEnd.size());
  directory.server = parse_server_name(decode_name(name));
  if (directory.server.empty()) return std::nullopt;
  return directory;
}

std::string ClusterLayout::store_file_name(std::uint64_t opening, std::uint64_t number) {
  return fmt::format("f{}-{}", opening, number);
}

}  // namespace pv2::cluster
