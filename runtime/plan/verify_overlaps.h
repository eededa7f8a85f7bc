// Memory that operands, results and collectives on their way have in common.
#ifndef ORIEL_RUNTIME_PLAN_VERIFY_OVERLAPS_H_
#define ORIEL_RUNTIME_PLAN_VERIFY_OVERLAPS_H_

#include "runtime/plan/access.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/verify_contents.h"
#include "runtime/plan/verify_internal.h"

namespace oriel::runtime {

// Part of VerifyMemory, which has made `rings` and `accesses` of the program.
void VerifyOverlaps(const plan::Plan& plan, int program, const Rings& rings,
                    const SegmentAccesses& accesses, Problems& problems);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_PLAN_VERIFY_OVERLAPS_H_
