// The option of passes that go by a strategy (strategy_pass.h).
#ifndef ORIEL_PASSES_STRATEGIZE_STRATEGY_OPTION_TD
#define ORIEL_PASSES_STRATEGIZE_STRATEGY_OPTION_TD

include "mlir/Pass/PassBase.td"

def StrategyOption
    : Option<"strategy", "strategy", "std::string", "\"\"", "Path of the strategy (YAML)">;

#endif
