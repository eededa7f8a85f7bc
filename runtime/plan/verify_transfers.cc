// What is sent between grids arrives where and when it should, and no rank waits for ever:
// transfer_order.h says how this is shown.
#include "runtime/plan/transfer_order.h"
#include "runtime/plan/verify_internal.h"

namespace oriel::runtime {

void VerifyTransfers(const plan::Plan& plan, Problems& problems) {
  if (plan.channels().empty()) return;
  for (const bool eval : {false, true}) {
    // A problem of the programs themselves is found in both, and counts once.
    static_cast<void>(OrderTransfers(plan, eval, problems));
  }
}

}  // namespace oriel::runtime
