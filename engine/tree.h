// SPDX-License-Identifier: Apache-2.0
//
// What the members of one tree mean to each other: the join of a parent with its children, the
// failure of what fails together, its rollback, and its end. Free functions over executions, all
// under the state mutex; they decide, and leave the doing to Effects.
//
// What fails together is a domain: a root, or a child whose failure is only reported (its head),
// with all descendants. Domains lie in each other; the widest one that has failed is undone, and
// what was being undone within it is planned anew with it.
//
// The rule of failure: it takes effect when the failing record is published. A member is in flight
// from being taken by a worker until its record is published; rollback begins when nobody in the
// domain is. So no step runs beside an undo.

#pragma once

#include "domains.h"
#include "ending.h"
#include "failure.h"
#include "flight.h"
#include "join.h"
#include "member_step.h"
#include "resume.h"
#include "rollback.h"
#include "rollback_planning.h"
#include "tree_works.h"
