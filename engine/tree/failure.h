// SPDX-License-Identifier: Apache-2.0
//
// Failure: a domain fails, is aborted, quarantined, or stopped for an order. A failure takes effect
// when the failing record is published: from then on no member of the domain goes forward. The
// members are stopped a section at a time (TreeWork::Kind::kStop).

#pragma once

#include "core/engine_core.h"
#include "model/tree_work.h"

namespace pv2 {

/// A member of the domain of `head` has failed (published): the domain is stopped. Does nothing if
/// it was stopped already.
void fail_tree(EngineCore& core, Execution& head) PV2_REQUIRES(core.state_mutex);

/// `member`, whose domain or one around it is stopped already, has failed (published). If that
/// domain was stopped for an order, the domain of `member` is noted to have failed.
void failed_too_late(EngineCore& core, Execution& member) PV2_REQUIRES(core.state_mutex);

/// An operator's order by which `member` goes forward again was published, but a domain around it
/// is stopped for another order. If no record of the inner domain of `member` says any more that it
/// failed, that domain is noted to go forward.
void repaired_too_late(EngineCore& core, Execution& member) PV2_REQUIRES(core.state_mutex);

/// Fails the whole tree of `root`, for a reason that is durable (published). The rollback
/// begins when all members are stopped and none is in flight.
void abort_tree(EngineCore& core, Execution& root, Effects& effects) PV2_REQUIRES(core.state_mutex);

/// Why an abort of the tree has to be refused, or OK. Refused if a member is past its point of no
/// return or may be about to pass it, or if the tree does not go forward any more; kUnavailable if
/// that is not known yet.
[[nodiscard]] Status why_not_abortable(Execution& root);

/// Freezes a tree that this program does not understand; its locks stay held. Logs `reason` and
/// tells the listeners. Does nothing if the tree is quarantined already.
void quarantine_tree(EngineCore& core, Execution& root, const Status& reason, Effects& effects)
    PV2_REQUIRES(core.state_mutex);

/// From now on no step or undo in the domain of `head` begins, until an order ends the domain. A
/// domain that goes forward is stopped as if it had failed, but no record says so. If this domain
/// or a wider one fails before the order is carried out, its rollback is planned by the records, as
/// after a restart.
void make_way_for_order(EngineCore& core, Execution& head) PV2_REQUIRES(core.state_mutex);

/// Goes on with a kStop work, as far as the section has room: stops one member after the other.
/// When all are stopped and none is in flight, a failed domain begins its rollback.
void stop_all(EngineCore& core, TreeWork& work, Effects& effects) PV2_REQUIRES(core.state_mutex);

}  // namespace pv2
