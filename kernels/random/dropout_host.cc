// dropout; see dropout.h.
#include <algorithm>

#include "kernels/common/checks.h"
#include "kernels/common/parallel.h"
#include "kernels/random/dropout.h"

namespace oriel::kernels {
namespace {

// Elements whose words are drawn before any of them is dropped.
constexpr int64_t kChunk = 64;

template <typename S>
void DropRun(const DropoutArgs& args, uint64_t bits, int64_t place, const S* x, S* y) {
  using T = Compute<S>;
  const T scale = static_cast<T>(args.scale);
  const uint32_t dropped_below = args.dropped_below;
  uint32_t words[kChunk + 4];  // of whole blocks of four
  for (int64_t i = 0; i < args.inner;) {
    const auto first = static_cast<uint64_t>(place + i);
    const auto skipped = static_cast<int64_t>(first % 4);
    const int64_t count = std::min(args.inner - i, kChunk - skipped);
    for (int64_t w = 0; w < skipped + count; w += 4) {
      const runtime::PhiloxCounter block = DropoutWords((first + w) / 4, bits, args.site);
      std::copy(block.begin(), block.end(), words + w);
    }
#pragma omp simd
    for (int64_t j = 0; j < count; ++j) {
      const bool drops = words[skipped + j] >> 8 < dropped_below;
      Assign(y + i + j, drops ? T(0) : static_cast<T>(x[i + j]) * scale);
    }
    i += count;
  }
}

struct Dropout {
  template <typename S>
  static absl::StatusOr<KernelFn> Make(const KernelSpec& spec) {
    ORIEL_ASSIGN_OR_RETURN(const DropoutArgs args, DropoutOf(spec));
    const int threads = spec.num_threads;
    return KernelFn([=](const KernelArgs& launch) {
      const S* x = launch.operand<S>(0);
      const int64_t* bits = launch.operand<int64_t>(1);
      S* y = launch.result<S>(0);
      int64_t first = 0;
      for (int c = 0; c < args.cuts; ++c) {
        first += *launch.operand<int64_t>(2 + c) * args.cut_strides[c];
      }
      ParallelFor(threads, args.samples * args.runs, args.inner, [&](int64_t begin, int64_t end) {
        for (int64_t run = begin; run < end; ++run) {
          const int64_t sample = run / args.runs, at = run * args.inner;
          if (bits[sample] < 0) {
            if (y != x) std::copy(x + at, x + at + args.inner, y + at);
            continue;
          }
          DropRun(args, static_cast<uint64_t>(bits[sample]),
                  PlaceOfRun(args, static_cast<uint32_t>(run % args.runs), first), x + at, y + at);
        }
      });
      return absl::OkStatus();
    });
  }
};

absl::StatusOr<KernelFn> MakeDropout(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 2, 2 + DropoutArgs::kDims, 1));
  return DispatchStored<Dropout>(spec, spec.operands[0].dtype);
}

ORIEL_REGISTER_HOST_KERNEL("dropout", 0, MakeDropout);

}  // namespace
}  // namespace oriel::kernels
