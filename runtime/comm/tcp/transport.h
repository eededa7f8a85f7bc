// Transfers of bytes between this rank and the others, over one TCP connection to each.
//
// A thread reads whatever comes and writes what a connection had no room for, so transfers go on
// while the rank computes, and a rank that is gone is noticed at once. Who starts a transfer writes
// what it can by itself.
#ifndef ORIEL_RUNTIME_COMM_TCP_TRANSPORT_H_
#define ORIEL_RUNTIME_COMM_TCP_TRANSPORT_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/comm/tcp/frames.h"
#include "runtime/comm/tcp/rendezvous.h"

namespace oriel::runtime {

// Thread-safe. Ranks are those of the world.
class TcpTransport {
 public:
  enum Side { kSender, kReceiver };

  // Where two sides of a transfer meet. Those of the same key match in the order in which they are
  // started on each side.
  struct Address {
    int64_t peer;
    uint64_t context;
    int64_t tag;
  };

  // One side of a transfer. All fields but `done` are the transport's.
  struct Transfer {
    Side side = kSender;
    TransferKind kind = TransferKind::kMessage;
    Address address = {0, 0, 0};
    char* data = nullptr;
    int64_t bytes = 0;
    uint64_t id = 0;
    std::atomic<bool> done{false};
    bool busy = false;  // `data` is in use, without the lock
    absl::Status status;
    std::condition_variable changed;
  };

  // `spins`: how often who waits looks before it sleeps.
  TcpTransport(RankConnections connections, int spins);
  // Leaves.
  ~TcpTransport();
  TcpTransport(const TcpTransport&) = delete;
  TcpTransport& operator=(const TcpTransport&) = delete;

  // Starts one side. The memory stays in place until Wait or GiveUp has returned. A message's send
  // is done once its receive is started; others may be done before. Aborted if the job has ended,
  // or the peer has left.
  absl::StatusOr<std::shared_ptr<Transfer>> Start(Side side, TransferKind kind, Address address,
                                                  void* data, int64_t bytes);
  // Aborted if the two sides differ in kind or size, and when the peer or the job ends.
  absl::Status Wait(Transfer& transfer, bool background);
  // This side does not wait any more. After it returns, its memory is not touched.
  void GiveUp(const std::shared_ptr<Transfer>& transfer);

  // What errors call each rank; at first by its number.
  void NameRanks(std::vector<int64_t> names);
  int64_t OwnName();

  // OK, or why the job has ended.
  absl::Status Check();
  // Ends it on all ranks. The first reason stays.
  void Abort(const absl::Status& reason);
  // Says good-bye: what has been sent still arrives. Waits for the peers' answer, a few seconds at
  // most. Nothing can be started after it.
  void Leave();

 private:
  using TransferPointer = std::shared_ptr<Transfer>;
  using Lock = std::unique_lock<std::mutex>;
  using Key = std::tuple<int64_t, uint64_t, int64_t>;  // peer, context, tag

  // What a peer has for this rank, and nobody has asked for yet.
  struct Offer {
    TransferKind kind = TransferKind::kMessage;
    uint64_t sender = 0;
    int64_t bytes = 0;
    bool eager = false;
    std::vector<char> payload;
    TransferPointer local;  // of this rank to itself
  };

  struct OutFrame {
    FrameHeader header;
    const char* payload;    // may be within `owned`
    int64_t bytes;          // of the payload
    TransferPointer owner;  // whose memory the payload is, done when it is written
    std::vector<char> owned;
    int64_t written = 0;  // with the header
  };

  struct Peer {
    Socket socket;
    std::string address;
    bool left = false;       // it has said good-bye
    bool knows_why = false;  // the job has ended: it was told
    bool parted = false;     // so has this rank
    bool closed = false;     // nothing comes any more
    bool shut = false;       // nothing goes any more
    bool writing = false;    // a thread does, without the lock
    std::deque<OutFrame> out;
    uint64_t first_out = 0;  // number of out.front()
    // What is being read; of the reading thread.
    FrameHeader header;
    int64_t header_read = 0;
    int64_t payload_left = 0;
    TransferPointer target;    // gets the payload; else:
    std::vector<char> buffer;  // does, unless it is discarded
    bool discards = false;
  };

  static Key KeyOf(const Address& address) { return {address.peer, address.context, address.tag}; }
  absl::Status Gone(int64_t peer) const;
  void StartSend(Lock& lock, const TransferPointer& transfer);
  void StartReceive(Lock& lock, const TransferPointer& transfer);
  // A receive and what was offered for it have met.
  void Match(Lock& lock, const TransferPointer& receiver, const Offer& offer);
  absl::Status Disagreement(const Transfer& mine, TransferKind kind, int64_t bytes) const;
  void Finish(Transfer& transfer, absl::Status status);
  void FailTransfers(const absl::Status& status, const std::function<bool(const Transfer&)>& which);
  void End(const absl::Status& reason);
  void AbortAll(Lock& lock, const absl::Status& reason);
  // Tells a peer once why the job has ended.
  void SayWhy(Lock& lock, int64_t peer);

  // Queues a frame, and writes what the connection takes.
  void Write(Lock& lock, int64_t peer, const FrameHeader& header, const char* payload,
             int64_t bytes, TransferPointer owner);
  void Flush(Lock& lock, Peer& peer);
  void WroteSome(Peer& peer, int64_t bytes);
  // The frame that has a transfer's memory gets a copy.
  static void Detach(OutFrame& frame);
  void Detach(const Transfer& transfer);

  // The thread.
  void Run();
  void Wake() const;
  void Read(int64_t peer);
  bool ReadSome(Lock& lock, int64_t peer);
  void BeginFrame(Lock& lock, int64_t peer);
  void EndFrame(Lock& lock, int64_t peer);
  void Accepted(Lock& lock, int64_t peer, const FrameHeader& header);
  void Close(Lock& lock, int64_t peer, const std::string& why);

  const int64_t rank_;
  const int spins_;
  const Socket wake_;  // an eventfd
  std::mutex mutex_;   // of what follows
  std::condition_variable peers_changed_;
  std::vector<std::unique_ptr<Peer>> peers_;
  uint64_t next_id_ = 1;
  std::map<uint64_t, TransferPointer> under_way_;  // by id; but not those in posted_
  std::map<Key, std::deque<TransferPointer>> posted_;
  std::map<Key, std::deque<Offer>> offers_;
  std::vector<int64_t> names_;  // by rank
  absl::Status reason_;
  bool leaving_ = false, stopping_ = false;
  std::thread thread_;
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_COMM_TCP_TRANSPORT_H_
