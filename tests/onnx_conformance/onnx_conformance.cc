// Runs ONNX's node tests; see --help and run_case.h.
#include <fstream>
#include <iostream>
#include <iterator>

#include "CLI/CLI.hpp"
#include "tests/onnx_conformance/report.h"

namespace oriel::conformance {
namespace {

constexpr int kSkipped = 77;

struct Options {
  std::string folder, only, write, check;
  bool list = false;
};

const char* nameOf(Verdict verdict) {
  return verdict == Verdict::kPass ? "pass" : verdict == Verdict::kWrong ? "WRONG" : "refused";
}

bool isUpToDate(const std::string& path, const std::string& document) {
  std::ifstream file(path);
  if (std::string(std::istreambuf_iterator<char>(file), {}) == document) {
    return true;
  }
  std::cerr << path << " is not what the tests give now; fix with: tools/dev/gen_docs.sh\n";
  return false;
}

int run(const Options& options) {
  auto cases = readCases(options.folder);
  if (!cases) {
    std::cout << "skipped: " << llvm::toString(cases.takeError())
              << "; tools/setup.sh writes ONNX's node tests\n";
    return kSkipped;
  }
  Report report(OpRegistry::standard());
  bool isAnyChosen = false;
  for (const NodeCase& test : *cases) {
    if (test.name.find(options.only) == std::string::npos) {
      continue;
    }
    isAnyChosen = true;
    if (test.dtypes == DTypes::kOutOfScope) {
      report.addOutOfScope();
      continue;
    }
    CaseResult result = runCase(test);
    report.add(test, result);
    if (options.list || result.verdict == Verdict::kWrong) {
      std::cout << nameOf(result.verdict) << " " << test.name << " (" << test.op << ") "
                << result.reason << std::endl;
    }
  }
  if (!isAnyChosen) {
    std::cout << "no test's name contains \"" << options.only << "\"\n";
    return 1;
  }
  std::cout << report.summary() << "\n";
  if (!options.write.empty()) {
    std::ofstream(options.write) << report.document();
  }
  bool fine = !report.hasWrong();
  return fine && (options.check.empty() || isUpToDate(options.check, report.document())) ? 0 : 1;
}

}  // namespace
}  // namespace oriel::conformance

int main(int argc, char** argv) {
  oriel::conformance::Options options;
  CLI::App app("Runs ONNX's node tests through importer and host kernels.");
  app.add_option("FOLDER", options.folder, "one folder per test")->default_val(ORIEL_NODE_TESTS);
  app.add_option("--only", options.only, "tests whose name contains this");
  app.add_flag("--list", options.list, "print each test's verdict");
  app.add_option("--write", options.write, "write the document that lists the ops");
  app.add_option("--check", options.check, "fail where this file is not that document");
  CLI11_PARSE(app, argc, argv);
  return oriel::conformance::run(options);
}
