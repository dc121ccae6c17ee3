// SPDX-License-Identifier: Apache-2.0
//
// The documentation does not drift from the code: what a page shows is what a test or an example
// runs, and what it points at exists. The last test case makes sure that the others can fail.

#include "docs/pages.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/catch.h"

namespace {

namespace fs = std::filesystem;
using pv2::docs::Snippet;

const fs::path kRoot = PV2_SOURCE_DIR;

std::string read(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void add_pages_in(const fs::path& folder, std::vector<fs::path>& found) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".md") found.push_back(entry.path());
  }
}

// The pages in the root, in each folder of the root, and among the decisions.
std::vector<fs::path> pages() {
  std::vector<fs::path> found;
  add_pages_in(kRoot, found);
  for (const auto& entry : fs::directory_iterator(kRoot)) {
    if (entry.is_directory()) add_pages_in(entry.path(), found);
  }
  add_pages_in(kRoot / "docs/decisions", found);
  return found;
}

std::string place(const fs::path& page, std::size_t line) {
  return fs::relative(page, kRoot).string() + ":" + std::to_string(line);
}

// A file is named from the root, or from the folder of the page. Public headers may be named as
// they are included, with or without "pv2/".
bool names_a_file(const fs::path& page, std::string name) {
  if (fs::exists(kRoot / name) || fs::exists(page.parent_path() / name)) return true;
  if (name.starts_with("pv2/")) name.erase(0, 4);
  const std::string layer = name.substr(0, name.find('/'));
  return fs::exists(kRoot / layer / "include/pv2" / name);
}

// What is wrong with a snippet, or nothing.
std::string complaint(const Snippet& snippet) {
  if (!snippet.compiled) return {};
  if (snippet.path.empty()) return "does not say where its text comes from";
  if (!fs::exists(kRoot / snippet.path)) return "comes from no file: " + snippet.path;
  const std::string source = read(kRoot / snippet.path);
  const auto text = snippet.region.empty() ? pv2::docs::without_first_comment(source)
                                           : pv2::docs::find_region(source, snippet.region);
  if (!text) return snippet.path + " has no (or no single) region " + snippet.region;
  if (*text != snippet.text) return "differs from " + snippet.path + ", which says:\n" + *text;
  return {};
}

}  // namespace

TEST_CASE("what a page shows as C++ is the text of a file that is compiled") {
  std::size_t compared = 0;
  for (const fs::path& page : pages()) {
    for (const Snippet& snippet : pv2::docs::find_snippets(read(page))) {
      INFO(place(page, snippet.line));
      CHECK(complaint(snippet) == "");
      compared += snippet.compiled ? 1 : 0;
    }
  }

  CHECK(compared > 5);
}

TEST_CASE("what a page links to, or names as a file, exists") {
  for (const fs::path& page : pages()) {
    const std::string text = read(page);
    for (const auto& link : pv2::docs::find_links(text)) {
      INFO(place(page, link.line) << " links to " << link.target);
      CHECK(fs::exists(page.parent_path() / link.target));
    }
    for (const auto& named : pv2::docs::find_named_files(text)) {
      INFO(place(page, named.line) << " names " << named.target);
      CHECK(names_a_file(page, named.target));
    }
  }
}

TEST_CASE("a snippet, a region, a link and a file name are found where they are") {
  const std::string source =
      "// A first comment.\n\nint a;\n  // [region two]\n  int b;\n\n    int c;\n  // [/region]\n";
  CHECK(pv2::docs::find_region(source, "two") == "int b;\n\n  int c;\n");
  CHECK(pv2::docs::find_region(source, "three") == std::nullopt);
  CHECK(pv2::docs::find_region(source + source, "two") == std::nullopt);
  CHECK(pv2::docs::without_first_comment("// A first\n// comment.\n\nint a;\n\n") == "int a;\n");

  const std::string page =
      "See [there](a/b.md#c), [the web](https://x.org/y) and `engine/tree/ending.cc`.\n"
      "<!-- from x.cc region two -->\n```cpp\nint b;\n```\n"
      "<!-- not compiled: a sketch -->\n```cpp\nint c;\n```\n"
      "```sh\nls `a/b.cc`\n```\n```cpp\nint d;\n```\n";
  const auto snippets = pv2::docs::find_snippets(page);
  REQUIRE(snippets.size() == 3);
  CHECK(snippets[0].path == "x.cc");
  CHECK(snippets[0].region == "two");
  CHECK(snippets[0].text == "int b;\n");
  CHECK(!snippets[1].compiled);
  CHECK(complaint(snippets[0]) == "comes from no file: x.cc");
  CHECK(complaint(snippets[2]) == "does not say where its text comes from");

  const auto links = pv2::docs::find_links(page);
  REQUIRE(links.size() == 1);
  CHECK(links[0].target == "a/b.md");
  const auto named = pv2::docs::find_named_files(page);
  REQUIRE(named.size() == 1);
  CHECK(named[0].target == "engine/tree/ending.cc");
}
