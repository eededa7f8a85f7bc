// Prepared batched matrix products on a device: the work of linear/ and conv/.
//
// The products of gemm.h, on memory of the device. Sums of f32 are in f32 (TF32 is never used),
// those of bf16 in f32 and rounded once, those of f64 in f64. The same product gives the same bits
// each time: nothing is added up by atomics.
//
//   ORIEL_ASSIGN_OR_RETURN(std::shared_ptr<DeviceGemm> gemm, MakeDeviceGemm(shape, device));
//   ORIEL_RETURN_IF_ERROR(device.AddScratch(gemm->workspace_bytes()));
//   ..
//   return gemm->Run(stream, a, b, bias, c, device.scratch());
#ifndef ORIEL_KERNELS_LINEAR_GEMM_CUDA_H_
#define ORIEL_KERNELS_LINEAR_GEMM_CUDA_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/cuda/device.h"
#include "kernels/linear/gemm.h"

namespace oriel::kernels::cuda {

// What is done with a product, beside a bias and a sum, before it goes to memory; `beside` is
// another matrix or vector of c's type.
enum class Epilogue {
  kNone,
  kGelu,      // c = gelu_tanh(product)
  kGeluKept,  // and beside [m, n] = product
  kGeluGrad,  // c = product times the derivative of gelu_tanh at beside [m, n], which is read
  kSumsOfA,   // beside [m] = sums of a's rows, over k
  kSumsOfB,   // beside [n] = sums of b's columns, over k
};

struct DeviceGemmShape : GemmShape {
  explicit DeviceGemmShape(const GemmShape& shape) : GemmShape(shape) {}
  // All matrices of the batch have the first one's `a`, or `b`.
  bool same_a = false, same_b = false;
  // Bytes to which every operand is aligned.
  int alignment = 64;
  Epilogue epilogue = Epilogue::kNone;
};

// On the device. `bias` is read where the shape has one, `addend` where it accumulates: it is `c`
// itself or apart from it. `beside` is the epilogue's.
struct DeviceGemmArgs {
  const void *a, *b, *bias, *addend;
  void* c;
  void* beside = nullptr;
};

// Holds the operands' addresses during Launch: for one thread.
class DeviceGemm {
 public:
  virtual ~DeviceGemm() = default;
  // Of `workspace`, which is aligned to 256 bytes.
  virtual int64_t workspace_bytes() const = 0;
  // Puts the product on the stream.
  virtual absl::Status Launch(CUstream stream, const DeviceGemmArgs& args,
                              CUdeviceptr workspace) = 0;
  // The same; one that accumulates adds to `c`.
  absl::Status Run(CUstream stream, const void* a, const void* b, const void* bias, void* c,
                   CUdeviceptr workspace) {
    return Launch(stream, {a, b, bias, c, c}, workspace);
  }
};

// By cuBLASLt: f32 and bf16, with the epilogues that it has. What its heuristics choose, or a file
// of timed algorithms has (product_choices.h), is asked for once per shape and device.
// Unimplemented, with the reason, where it has nothing, and where sums beside a product leave most
// of the device idle; Unavailable where the library is missing.
absl::StatusOr<std::shared_ptr<DeviceGemm>> MakeCublasLtGemm(const DeviceGemmShape& shape,
                                                             Device& device);
// By Oriel's own kernel, which takes every product of f32, f64 and bf16 without an epilogue, but
// does not use the tensor cores.
absl::StatusOr<std::shared_ptr<DeviceGemm>> MakeTiledGemm(const DeviceGemmShape& shape,
                                                          Device& device);
// The first of these that takes it.
absl::StatusOr<std::shared_ptr<DeviceGemm>> MakeDeviceGemm(const DeviceGemmShape& shape,
                                                           Device& device);

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_LINEAR_GEMM_CUDA_H_
