// What goes over the connection between two ranks: frames, one behind the other.
//
//   offer    sender    I have `bytes` bytes for (context, tag): `sender` is their number
//   eager    sender    the same, and here they are: up to kEagerBytes
//   accept   receiver  number `sender` has found its receiver, who expects `bytes` bytes; of what
//                      was offered they are to be sent as number `receiver`
//   data     sender    the bytes for number `receiver`
//   cancel   sender    the bytes for number `receiver` will not come
//   abort    anybody   the job ends; `bytes` bytes of text say why
//   leave    anybody   the last frame of a rank
//
// So a large message goes straight from the sender's memory to the receiver's, and no rank can fill
// another one's memory with what it does not want yet. Ranks are little-endian.
#ifndef ORIEL_RUNTIME_COMM_TCP_FRAMES_H_
#define ORIEL_RUNTIME_COMM_TCP_FRAMES_H_

#include <cstdint>

namespace oriel::runtime {

inline constexpr int64_t kEagerBytes = 64 << 10;
inline constexpr int64_t kMaxAbortText = 64 << 10;

enum class FrameType : uint32_t { kOffer = 1, kEager, kAccept, kData, kCancel, kAbort, kLeave };

// What bytes are for. Both sides of a transfer name the same, or ranks disagree about what they do.
enum class TransferKind : uint32_t { kMessage, kExchange, kGather, kBroadcast, kBarrier };

struct FrameHeader {
  FrameType type;
  TransferKind kind;
  uint64_t context;  // of the group
  int64_t tag;
  uint64_t sender;
  uint64_t receiver;
  int64_t bytes;
};
static_assert(sizeof(FrameHeader) == 48, "no padding that differs");

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_COMM_TCP_FRAMES_H_
