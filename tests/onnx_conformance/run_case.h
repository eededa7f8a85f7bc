// Runs a node test: imports and specializes its model, interprets the ops through the host kernels,
// and compares the outputs with ONNX's at the tolerances of ONNX's own runner (see difference()).
//
// Oriel's programs are static: shapes, axes, bounds and the like must be known at compile time,
// which the tests pass as inputs. So what can't be imported is tried again with integer and boolean
// inputs bound (made constants), then also with all other inputs but the first, and then with all.
// An input without elements is always bound.
#ifndef ORIEL_TESTS_ONNX_CONFORMANCE_RUN_CASE_H_
#define ORIEL_TESTS_ONNX_CONFORMANCE_RUN_CASE_H_

#include <string>

#include "tests/onnx_conformance/node_case.h"

namespace oriel::conformance {

enum class Verdict { kPass, kWrong, kRefused };

struct CaseResult {
  Verdict verdict;
  std::string reason;  // why refused, or the first element that differs
};

// `test` is in scope.
CaseResult runCase(const NodeCase& test);

}  // namespace oriel::conformance

#endif  // ORIEL_TESTS_ONNX_CONFORMANCE_RUN_CASE_H_
