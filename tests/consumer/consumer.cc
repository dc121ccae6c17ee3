// SPDX-License-Identifier: Apache-2.0
//
// The smallest program of a user: it proves that the headers are found and the library links from
// another project. It tests nothing about what the library does. Exits with 1 when what it linked
// is not what its headers say.

#include <pv2/base/status.h>

#include <cstdio>

int main() {
  const pv2::Status status(pv2::StatusCode::kNotFound, "order o-42 is not here");
  const bool as_expected = !status.ok() && status.code() == pv2::StatusCode::kNotFound;
  std::printf("%s\n", status.to_string().c_str());
  return as_expected ? 0 : 1;
}
