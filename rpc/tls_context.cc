// SPDX-License-Identifier: Apache-2.0
//
// What a build without OpenSSL has instead of TLS: a sentence.

#include "tls_context.h"

namespace pv2 {

Result<std::unique_ptr<TlsContext>> make_tls_context(const TlsOptions& /*options*/) {
  return Status(StatusCode::kNotSupported,
                "this pv2 was built without TLS; build it with -DPV2_TLS=ON, which needs OpenSSL");
}

}  // namespace pv2
