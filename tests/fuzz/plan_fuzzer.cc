// Any message as a plan, as `oriel-run` and `oriel verify` take it: through the file's encoding
// and the verifier. Inputs are the payload, without the header and its checksums.
#include <cstdint>
#include <memory>
#include <string>

#include "google/protobuf/stubs/logging.h"
#include "google/protobuf/util/message_differencer.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/plan_stats.h"
#include "runtime/plan/verify.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/proto_mutator.h"

namespace rt = oriel::runtime;

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t maxSize,
                                          unsigned seed) {
  oriel::plan::Plan plan;
  return oriel::fuzz::mutateProto(plan, data, size, maxSize, seed);
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* data1, size_t size1,
                                            const uint8_t* data2, size_t size2, uint8_t* out,
                                            size_t maxSize, unsigned seed) {
  oriel::plan::Plan first, second;
  return oriel::fuzz::crossOverProtos(first, second, data1, size1, data2, size2, out, maxSize,
                                      seed);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using oriel::fuzz::check;
  google::protobuf::LogSilencer silencer;
  std::string bytes(reinterpret_cast<const char*>(data), size);
  (void)rt::DecodePlan(bytes, "p.oplan");
  oriel::plan::Plan plan;
  if (!plan.ParseFromString(bytes)) return 0;
  absl::StatusOr<std::string> encoded = rt::EncodePlan(plan);
  check(encoded.ok(), "what was parsed can be encoded", encoded.status().ToString());
  absl::StatusOr<oriel::plan::Plan> decoded = rt::DecodePlan(*encoded, "p.oplan");
  check(decoded.ok(), "what was encoded can be decoded", decoded.status().ToString());
  absl::Status verified = rt::VerifyPlan(*decoded);
  if (!verified.ok()) {
    check(!verified.message().empty(), "an error says why");
    return 0;
  }
  oriel::fuzz::accepted();
  rt::PlanStats stats = rt::ComputePlanStats(*decoded);
  for (const rt::ProgramStats& program : stats.programs) {
    check(program.arena_bytes >= 0 && program.rank_count >= 1, "a verified plan has sizes");
  }
  return 0;
}
