// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes the decoders of nonce rows, sessions and responses. The first byte chooses the decoder and
// whether the rest is a whole value, or a message inside a proper frame; the key is taken from the
// input too. Decoding ends in a Status with a reason or in a value, and a decoded value encodes to
// bytes that mean the same.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "pv2/base/assert.h"
#include "pv2/base/frame.h"
#include "pv2/idempotency/nonce_rows.h"
#include "session_rows.h"

namespace {

using namespace pv2;

// Encodes `row` with `put`, and returns what `decode` makes of the bytes.
template <class Row, class Put, class Decode>
Row again(const Row& row, Put put, Decode decode) {
  RowBatch batch;
  put(row, batch);
  std::string key, value;
  batch.for_each([&](RowOperation, Space, std::string_view k, std::string_view v) {
    key = k;
    value = v;
  });
  auto same = decode(key, value);
  PV2_ASSERT(same.ok(), "what was encoded can be decoded");
  return *std::move(same);
}

template <class Row>
bool is_whole(const Result<Row>& row) {
  PV2_ASSERT(row.ok() || !row.status().message().empty(), "a refusal has a reason");
  return row.ok();
}

void fuzz_nonce(std::string_view key, std::string_view value) {
  const auto row = decode_nonce_row(key, value);
  if (!is_whole(row)) return;
  const NonceRow same = again(*row, put_nonce_row, decode_nonce_row);
  PV2_ASSERT(same.request.nonce == row->request.nonce && same.result == row->result &&
                 same.request.fingerprint == row->request.fingerprint &&
                 same.request.expires_at == row->request.expires_at && same.done_at == row->done_at,
             "a nonce row means the same after it was read");
}

void fuzz_session(std::string_view key, std::string_view value) {
  const auto row = decode_session(key, value);
  if (!is_whole(row)) return;
  const SessionRow same = again(*row, put_session, decode_session);
  PV2_ASSERT(same.id == row->id && same.token == row->token && same.owner == row->owner &&
                 same.window == row->window && same.first_unacked == row->first_unacked,
             "a session's row means the same after it was read");
}

void fuzz_response(std::string_view key, std::string_view value) {
  const auto row = decode_response(key, value);
  if (!is_whole(row)) return;
  const ResponseRow same = again(*row, put_response, decode_response);
  PV2_ASSERT(same.session == row->session && same.number == row->number &&
                 same.fingerprint == row->fingerprint &&
                 same.response->status() == row->response->status() &&
                 (!row->response->ok() || **same.response == **row->response),
             "a response means the same after it was read");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 18) return 0;
  std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto choice = static_cast<unsigned char>(input.front());
  const std::string_view numbers = input.substr(1, 16);
  std::string value(input.substr(17));
  if ((choice & 4) != 0) {
    std::string framed;
    append_frame(framed, value);
    value = framed;
  }
  const std::string sessions(kSessionRows);
  switch (choice % 4) {
    case 0:
      fuzz_nonce(std::string(kNonceRows).append(numbers), value);
      break;
    case 1:
      fuzz_session((sessions + 's').append(numbers.substr(0, 8)), value);
      break;
    case 2:
      fuzz_response((sessions + 'r').append(numbers), value);
      break;
    default:  // any key
      fuzz_nonce(numbers, value);
      fuzz_session(numbers, value);
      fuzz_response(numbers, value);
      (void)is_whole(decode_id_bound(value));
      break;
  }
  return 0;
}
