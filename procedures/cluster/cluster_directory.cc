// SPDX-License-Identifier: Apache-2.0
//
// Registrations of region servers, as files.

#include "cluster/cluster_directory.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>

#include "cluster/disk.h"
#include "pv2/procedures/region_server.h"

namespace pv2 {

namespace fs = std::filesystem;

Status ClusterDirectory::make() const {
  std::error_code error;
  fs::create_directories(root_, error);
  if (error) {
    return {StatusCode::kIoError, "cannot create " + root_.string() + ": " + error.message()};
  }
  for (const char* const part : {"tables", "servers", "fenced", "opened"}) {
    if (Status bad = internal::make_directory(root_ / part); !bad.ok()) return bad;
  }
  return {};
}

Status ClusterDirectory::register_server(const ServerName& name, std::uint16_t port) const {
  return internal::write_file(registration(name), std::to_string(port));
}

Status ClusterDirectory::unregister_server(const ServerName& name) const {
  if (std::rename(registration(name).c_str(), fence(name).c_str()) != 0 && errno != ENOENT) {
    return internal::io_error("fence", registration(name));
  }
  if (Status bad = internal::sync_directory(root_ / "fenced"); !bad.ok()) return bad;
  return internal::sync_directory(root_ / "servers");
}

bool ClusterDirectory::is_registered(const ServerName& name) const {
  std::error_code error;
  return fs::exists(registration(name), error);
}

Result<std::vector<ServerName>> ClusterDirectory::registered() const {
  std::vector<ServerName> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root_ / "servers", error)) {
    // A registration that is still being written has another name, which is not the name of a
    // server.
    const ServerName name = parse_server_name(entry.path().filename().string());
    if (!name.empty()) names.push_back(name);
  }
  if (error) {
    return Status(StatusCode::kIoError,
                  "cannot list " + (root_ / "servers").string() + ": " + error.message());
  }
  std::ranges::sort(names);
  return names;
}

Result<std::uint16_t> ClusterDirectory::port(const ServerName& name) const {
  Result<std::string> text = internal::read_file(registration(name));
  if (!text.ok()) text = internal::read_file(fence(name));
  if (!text.ok()) return text.status();
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), port);
  if (error != std::errc() || end != text->data() + text->size()) {
    return Status(StatusCode::kCorruption,
                  "the registration of " + to_string(name) + " is damaged");
  }
  return port;
}

Result<std::map<std::string, unsigned>> ClusterDirectory::server_effects() const {
  std::map<std::string, unsigned> effects;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root_ / "opened", error)) {
    std::ifstream lines(entry.path());
    for (std::string line; std::getline(lines, line);) ++effects[line];
  }
  if (error) {
    return Status(StatusCode::kIoError,
                  "cannot list " + (root_ / "opened").string() + ": " + error.message());
  }
  return effects;
}

Status make_cluster_directory(const fs::path& path) { return ClusterDirectory(path).make(); }

}  // namespace pv2
