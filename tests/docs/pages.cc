// SPDX-License-Identifier: Apache-2.0
//
// Line by line, with two regular expressions for what stands inside a line.

#include "docs/pages.h"

#include <algorithm>
#include <regex>
#include <sstream>

namespace pv2::docs {
namespace {

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  std::istringstream stream{std::string(text)};
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string join(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

bool is_fence(std::string_view line) { return line.starts_with("```"); }

// What the comment above a block says about it.
void read_marker(const std::string& line, Snippet& snippet) {
  static const std::regex from("<!-- from ([^ ]+)( region ([^ ]+))? -->");
  std::smatch match;
  if (line.starts_with("<!-- not compiled: ")) snippet.compiled = false;
  if (!std::regex_match(line, match, from)) return;
  snippet.path = match[1];
  snippet.region = match[3];
}

std::vector<Pointer> find_all(std::string_view page, const std::regex& pattern) {
  std::vector<Pointer> found;
  bool in_block = false;
  std::size_t number = 0;
  for (const std::string& line : lines_of(page)) {
    ++number;
    if (is_fence(line)) in_block = !in_block;
    if (in_block || line.starts_with("    ")) continue;
    for (std::sregex_iterator at(line.begin(), line.end(), pattern), end; at != end; ++at) {
      found.push_back({number, (*at)[1]});
    }
  }
  return found;
}

std::vector<std::string> without_common_indentation(std::vector<std::string> lines) {
  std::size_t indentation = std::string::npos;
  for (const std::string& line : lines) {
    if (!line.empty()) indentation = std::min(indentation, line.find_first_not_of(' '));
  }
  for (std::string& line : lines) {
    if (!line.empty()) line.erase(0, indentation);
  }
  return lines;
}

}  // namespace

std::vector<Snippet> find_snippets(std::string_view page) {
  std::vector<Snippet> snippets;
  const std::vector<std::string> lines = lines_of(page);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!is_fence(lines[i])) continue;
    const bool is_cpp = lines[i] == "```cpp";
    Snippet snippet{.line = i + 1};
    if (i > 0) read_marker(lines[i - 1], snippet);
    for (++i; i < lines.size() && !is_fence(lines[i]); ++i) snippet.text += lines[i] + "\n";
    if (is_cpp) snippets.push_back(std::move(snippet));
  }
  return snippets;
}

std::vector<Pointer> find_links(std::string_view page) {
  static const std::regex link(R"(\]\(([^)#]+)(#[^)]*)?\))");
  std::vector<Pointer> links = find_all(page, link);
  std::erase_if(links,
                [](const Pointer& to) { return to.target.find("://") != std::string::npos; });
  return links;
}

std::vector<Pointer> find_named_files(std::string_view page) {
  static const std::regex name("`([a-z0-9_.-]+/[a-z0-9_./-]+\\.(?:h|cc|sh|md|cmake))`");
  return find_all(page, name);
}

std::optional<std::string> find_region(std::string_view source, std::string_view name) {
  const std::string begin = "// [region " + std::string(name) + "]";
  std::optional<std::vector<std::string>> region;
  bool inside = false;
  for (const std::string& line : lines_of(source)) {
    const std::size_t text = line.find_first_not_of(' ');
    const std::string_view words =
        text == std::string::npos ? std::string_view() : std::string_view(line).substr(text);
    if (words == begin) {
      if (region) return std::nullopt;
      region.emplace();
      inside = true;
    } else if (words == "// [/region]") {
      inside = false;
    } else if (inside) {
      region->push_back(line);
    }
  }
  if (!region || inside) return std::nullopt;
  return join(without_common_indentation(*std::move(region)));
}

std::string without_first_comment(std::string_view source) {
  std::vector<std::string> lines = lines_of(source);
  const auto code = std::find_if(lines.begin(), lines.end(), [](const std::string& line) {
    return !line.empty() && !line.starts_with("//");
  });
  lines.erase(lines.begin(), code);
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return join(lines);
}

}  // namespace pv2::docs
