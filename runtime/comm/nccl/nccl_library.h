// NCCL, as a table of functions: loaded when it is first needed, emulated for tests.
#ifndef ORIEL_RUNTIME_COMM_NCCL_NCCL_LIBRARY_H_
#define ORIEL_RUNTIME_COMM_NCCL_NCCL_LIBRARY_H_

#include <nccl.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace oriel::runtime {

// Every function of libnccl that Oriel calls.
#define ORIEL_NCCL_FUNCTIONS(F) \
  F(ncclGetVersion)             \
  F(ncclGetUniqueId)            \
  F(ncclGetErrorString)         \
  F(ncclGetLastError)           \
  F(ncclCommInitRankConfig)     \
  F(ncclCommFinalize)           \
  F(ncclCommDestroy)            \
  F(ncclCommAbort)              \
  F(ncclCommGetAsyncError)      \
  F(ncclAllReduce)              \
  F(ncclReduceScatter)          \
  F(ncclAllGather)              \
  F(ncclBroadcast)              \
  F(ncclSend)                   \
  F(ncclRecv)                   \
  F(ncclGroupStart)             \
  F(ncclGroupEnd)

struct Nccl {
#define ORIEL_NCCL_MEMBER(name) decltype(&::name) name = nullptr;
  ORIEL_NCCL_FUNCTIONS(ORIEL_NCCL_MEMBER)
#undef ORIEL_NCCL_MEMBER
};

// The machine's libnccl.so.2; the same table on every call. Unavailable, with what is missing and
// what to do.
absl::StatusOr<const Nccl*> SystemNccl();

// "2.28.9"
std::string NcclVersionName(int version);

// OK (also for what is still in progress), or NCCL's text and, where it says more, its last words,
// behind `what`. Aborted for an error of another rank or of the network, InvalidArgument,
// FailedPrecondition for misuse (two ranks on one GPU), Internal.
absl::Status NcclStatus(const Nccl& nccl, ncclResult_t result, const char* what,
                        ncclComm_t comm = nullptr);

// ORIEL_RETURN_IF_ERROR(ORIEL_NCCL(nccl, ncclGetVersion, &version));
#define ORIEL_NCCL(nccl, function, ...) \
  ::oriel::runtime::NcclStatus((nccl), (nccl).function(__VA_ARGS__), #function)

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_COMM_NCCL_NCCL_LIBRARY_H_
