// The plan on disk: a header of 32 bytes, then the message of plan.proto.
//
//   bytes  0..7   magic, "\x8fOPLAN\r\n"; its first and last bytes catch transfers as text
//          8..11  format version of the writer
//         12..15  oldest format version whose reader understands this file
//         16..23  bytes of the payload
//         24..27  CRC-32 of the payload (ISO 3309, as in zlib)
//         28..31  CRC-32 of bytes 0..27
//
// Numbers are little-endian. The header keeps this layout in every format version, so that an
// older reader can say what is wrong. See docs/plan_format.md.
#ifndef ORIEL_RUNTIME_PLAN_PLAN_FILE_H_
#define ORIEL_RUNTIME_PLAN_PLAN_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/plan/plan.pb.h"

namespace oriel::runtime {

// Raised for each change of the format.
//   2: initial values that the runtime makes
//   3: inputs of images, and inputs that are filled from another member
//   4: collectives that gather, scatter and swap pieces, and slices
//   5: how launches split
//   6: several grids, placements of parameters, channels; inputs are of all ranks together
//   7: collectives that are started and waited for, with several operands of every kind
//   8: each copy of a buffer has an offset of its own
//   9: the device; generated kernels
//   10: launches that add operands to results
//   11: the processes of ranks
//   12: gradients that the first run of a step sets
//   13: parameters that are parts of what files have as one
//   14: outputs of numbers in pieces along any dimension
//   15: threads of CUDA that compute several elements of a generated kernel
//   16: gradients that are not kept from step to step
//   17: remainders of masters
//   18: learning rates that are held before they decay
//   19: which weights a plan was compiled with
//   20: random bits of samples
//   21: images of several kinds
//   22: padding of parts, of groups, and of more than an element for each rank
inline constexpr uint32_t kPlanFormatVersion = 22;
// The oldest format that this reader understands, and the oldest reader that understands plans of
// this format; of those with parts of parameters, which others would take for parameters of their
// own, with gradients that are not kept, with remainders of masters, with rates that are held, with
// images of several kinds, and with padding that others refuse.
inline constexpr uint32_t kOldestPlanFormat = 8;
inline constexpr uint32_t kOldestReaderOfParts = 13;
inline constexpr uint32_t kOldestReaderOfStepGradients = 16;
inline constexpr uint32_t kOldestReaderOfRemainders = 17;
inline constexpr uint32_t kOldestReaderOfHeldRates = 18;
inline constexpr uint32_t kOldestReaderOfImageKinds = 21;
inline constexpr uint32_t kOldestReaderOfPaddedHeads = 22;
inline constexpr int64_t kPlanHeaderBytes = 32;

// Writes a plan. The same plan gives the same bytes. The file appears complete or not at all:
// it is written under a temporary name in the same folder, synced and renamed.
absl::Status WritePlan(const plan::Plan& plan, const std::string& path);

// Reads a plan. The result has the right bytes but is not verified: see VerifyPlan. Errors
// name the file: NotFound for a missing one, InvalidArgument for what is not a plan,
// DataLoss for a truncated or corrupt one, FailedPrecondition for a newer or too old format.
absl::StatusOr<plan::Plan> ReadPlan(const std::string& path);

// The same from and to bytes; `name` stands for the file in errors.
absl::StatusOr<std::string> EncodePlan(const plan::Plan& plan);
absl::StatusOr<plan::Plan> DecodePlan(std::string_view bytes, const std::string& name);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_PLAN_PLAN_FILE_H_
