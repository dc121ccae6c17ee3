// SPDX-License-Identifier: Apache-2.0
//
// Loading alone: which calls are put off, and in which order they are made.

#include "core/loading.h"

#include <string>

#include "support/catch.h"

namespace pv2::testing::loading_test {

TEST_CASE("calls are put off while loading runs, and later ones do not overtake them") {
  Loading loading;
  std::string made;
  const auto call = [&](const std::string& name, ReplyOn on = ReplyOn::kPool) {
    loading.when_over(Reply<int>{.on = on}, [&made, name](const Reply<int>& reply) {
      made += name + (reply.on == ReplyOn::kWaitingCaller ? "! " : " ");
    });
  };
  call("before", ReplyOn::kWaitingCaller);
  loading.begin();
  loading.when_over(Reply<int>(), [&](const Reply<int>&) {
    made += "first ";
    call("late");  // while calls are being made
  });
  call("second", ReplyOn::kWaitingCaller);  // its caller sleeps by then, and cannot write
  CHECK(made == "before! ");
  loading.become(Loading::State::kEnding);
  CHECK(loading.runs());
  loading.become(Loading::State::kOver);
  call("third");
  CHECK(made == "before! ");
  loading.release();
  CHECK(made == "before! first second third late ");
  call("after", ReplyOn::kWaitingCaller);
  CHECK(made == "before! first second third late after! ");
}

}  // namespace pv2::testing::loading_test
