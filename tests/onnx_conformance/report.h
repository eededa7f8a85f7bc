// Counts of verdicts by op, and the document that lists the supported ops.
#ifndef ORIEL_TESTS_ONNX_CONFORMANCE_REPORT_H_
#define ORIEL_TESTS_ONNX_CONFORMANCE_REPORT_H_

#include <map>
#include <string>
#include <vector>

#include "frontend/op_registry.h"
#include "tests/onnx_conformance/run_case.h"

namespace oriel::conformance {

class Report {
 public:
  explicit Report(const OpRegistry& registry) : registry_(registry) {}

  void addOutOfScope() { ++outOfScope_; }
  void add(const NodeCase& test, const CaseResult& result);

  bool hasWrong() const { return wrong_ > 0; }
  // "1200 passed, 0 wrong, ..", one line.
  std::string summary() const;
  // Markdown: the supported ops with the versions they are implemented from, tests passed, and what
  // is refused; then the ops that tests use and Oriel does not import.
  std::string document() const;

 private:
  struct Count {
    int passed = 0, tests = 0;
    std::string text() const;  // "3 / 4", "" for no tests
    Count& operator+=(const Count& other);
  };
  struct Op {
    Count floats, others;
    std::map<std::string, int> refusals;  // tests by reason
  };
  // Whether Oriel imports it: by a handler, or at least one test's body.
  bool isSupported(const std::string& name, const Op& op) const;
  std::string row(const std::string& name, const Op& op) const;
  // Of all supported ops.
  Count total(Count Op::*which) const;

  const OpRegistry& registry_;
  std::map<std::string, Op> ops_;
  int outOfScope_ = 0, wrong_ = 0;
};

}  // namespace oriel::conformance

#endif  // ORIEL_TESTS_ONNX_CONFORMANCE_REPORT_H_
