// The cluster of a module, as the attribute `oriel.cluster`: what predicted times are of.
#ifndef ORIEL_PASSES_COST_CLUSTER_ATTRIBUTE_H_
#define ORIEL_PASSES_COST_CLUSTER_ATTRIBUTE_H_

#include <vector>

#include "mlir/IR/BuiltinOps.h"
#include "passes/cost/cluster.h"
#include "passes/cost/software_stack.h"

namespace oriel {

void setCluster(mlir::ModuleOp module, const Cluster& cluster);

// Of the module that an op is in, or of one around that; without a cluster, of defaultCluster().
DeviceRates deviceRatesOf(mlir::Operation* op);
// Likewise; what the cluster's attribute does not say is as Efficiency has it.
Efficiency efficiencyOf(mlir::Operation* op);
// Likewise; innermost first.
std::vector<LinkLevel> linkLevelsOf(mlir::Operation* op);

// The attribute `oriel.stack`; without it all numbers are as SoftwareStack has them.
void setSoftwareStack(mlir::ModuleOp module, const SoftwareStack& stack);
SoftwareStack softwareStackOf(mlir::Operation* op);

}  // namespace oriel

#endif  // ORIEL_PASSES_COST_CLUSTER_ATTRIBUTE_H_
