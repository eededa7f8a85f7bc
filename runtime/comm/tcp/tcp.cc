#include "runtime/comm/tcp/tcp.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/control_group.h"
#include "runtime/base/status.h"
#include "runtime/comm/mix.h"
#include "runtime/comm/rank_order.h"
#include "runtime/comm/reduce.h"
#include "runtime/comm/spin.h"
#include "runtime/comm/tcp/rendezvous.h"
#include "runtime/comm/tcp/transport.h"

namespace oriel::runtime {
namespace {

// Of a broadcast, that a rank passes on while it gets the next.
constexpr int64_t kBroadcastBytes = 4 << 20;
// Rounds of a collective have tags of their own.
constexpr int64_t kRounds = 64;

class TcpMessage final : public Message {
 public:
  TcpMessage(std::shared_ptr<TcpTransport> transport,
             std::shared_ptr<TcpTransport::Transfer> transfer)
      : transport_(std::move(transport)), transfer_(std::move(transfer)) {}
  ~TcpMessage() override { transport_->GiveUp(transfer_); }

  absl::Status Wait() override { return transport_->Wait(*transfer_, /*background=*/false); }

 private:
  const std::shared_ptr<TcpTransport> transport_;
  const std::shared_ptr<TcpTransport::Transfer> transfer_;
};

// Every rank knows the numbers of its groups: those of the same ranks, made in the same order.
class TcpCommunicator final : public RankOrderCommunicator {
 public:
  TcpCommunicator(std::shared_ptr<TcpTransport> transport, std::vector<int64_t> world_ranks,
                  int64_t rank, uint64_t context, bool is_world)
      : RankOrderCommunicator(rank, static_cast<int64_t>(world_ranks.size())),
        transport_(std::move(transport)),
        world_ranks_(std::move(world_ranks)),
        context_(context),
        is_world_(is_world) {}
  ~TcpCommunicator() override {
    if (is_world_) transport_->Leave();
  }

  std::string name() const override { return "tcp"; }

  absl::StatusOr<std::unique_ptr<Communicator>> Group(const std::vector<int64_t>& ranks) override {
    ORIEL_RETURN_IF_ERROR(CheckGroup(ranks, rank(), size()));
    return Join(ranks);
  }

  absl::StatusOr<std::unique_ptr<Communicator>> Renumber(
      const std::vector<int64_t>& ranks) override {
    ORIEL_ASSIGN_OR_RETURN(std::vector<int64_t> names, NewNumbers(ranks, size()));
    transport_->NameRanks(std::move(names));
    std::unique_ptr<Communicator> renumbered = Join(ranks);
    // From here on any rank may be the one that tells the others which was lost.
    ORIEL_RETURN_IF_ERROR(renumbered->Barrier());
    return renumbered;
  }

  absl::Status Broadcast(int64_t root, void* data, int64_t bytes) override {
    if (root < 0 || root >= size() || bytes < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("broadcast of ", bytes, " bytes from rank ", root, " of ", size()));
    }
    ORIEL_RETURN_IF_ERROR(transport_->Check());
    for (int64_t begin = 0; begin < bytes; begin += kBroadcastBytes) {
      ORIEL_RETURN_IF_ERROR(BroadcastPart(root, static_cast<char*>(data) + begin,
                                          std::min(kBroadcastBytes, bytes - begin)));
    }
    return absl::OkStatus();
  }

  // After round k, each rank knows of the 2^(k+1) - 1 before it.
  absl::Status Barrier() override {
    ORIEL_RETURN_IF_ERROR(transport_->Check());
    Begin(TransferKind::kBarrier);
    int64_t round = 0;
    for (int64_t hop = 1; hop < size(); hop *= 2, ++round) {
      ORIEL_RETURN_IF_ERROR(StartReceive((rank() + size() - hop) % size(), nullptr, 0, round));
      ORIEL_RETURN_IF_ERROR(StartSend((rank() + hop) % size(), nullptr, 0, round));
      ORIEL_RETURN_IF_ERROR(Finish());
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<Message>> Send(int64_t peer, int64_t tag, const void* data,
                                                int64_t bytes) override {
    ORIEL_RETURN_IF_ERROR(CheckMessage("send", peer, tag, data, bytes, size()));
    return StartMessage(TcpTransport::kSender, peer, tag, const_cast<void*>(data), bytes);
  }

  absl::StatusOr<std::unique_ptr<Message>> Receive(int64_t peer, int64_t tag, void* data,
                                                   int64_t bytes) override {
    ORIEL_RETURN_IF_ERROR(CheckMessage("receive", peer, tag, data, bytes, size()));
    return StartMessage(TcpTransport::kReceiver, peer, tag, data, bytes);
  }

  void SetBackground(bool background) override { background_ = background; }

  absl::Status Check() override { return transport_->Check(); }

  void Abort(const absl::Status& reason) override {
    const std::string who = absl::StrCat("rank ", transport_->OwnName());
    // An executor's error begins with the rank already.
    const bool named = absl::StartsWith(reason.message(), who);
    transport_->Abort(absl::AbortedError(named ? std::string(reason.message())
                                               : absl::StrCat(who, " failed: ", reason.message())));
  }

 private:
  // Those of `ranks`, numbered as they are listed.
  std::unique_ptr<Communicator> Join(const std::vector<int64_t>& ranks) {
    std::vector<int64_t> world_ranks;
    uint64_t context = Mix(context_, static_cast<uint64_t>(++groups_[ranks]));
    for (const int64_t member : ranks) {
      world_ranks.push_back(world_ranks_[member]);
      context = Mix(context, static_cast<uint64_t>(world_ranks.back()) + 1);
    }
    const int64_t place = std::find(ranks.begin(), ranks.end(), rank()) - ranks.begin();
    return std::make_unique<TcpCommunicator>(transport_, std::move(world_ranks), place, context,
                                             /*is_world=*/false);
  }

  absl::StatusOr<std::unique_ptr<Message>> StartMessage(TcpTransport::Side side, int64_t peer,
                                                        int64_t tag, void* data, int64_t bytes) {
    ORIEL_ASSIGN_OR_RETURN(auto transfer,
                           transport_->Start(side, TransferKind::kMessage,
                                             {world_ranks_[peer], context_, tag}, data, bytes));
    return std::make_unique<TcpMessage>(transport_, std::move(transfer));
  }

  absl::Status ExchangeBytes(const char* source, absl::Span<const Extent> outgoing, char* target,
                             absl::Span<const Extent> incoming) override {
    Begin(TransferKind::kExchange);
    if (outgoing[rank()].bytes > 0) {
      std::memcpy(target + incoming[rank()].offset, source + outgoing[rank()].offset,
                  outgoing[rank()].bytes);
    }
    for (int64_t hop = 1; hop < size(); ++hop) {
      const int64_t from = (rank() + size() - hop) % size();
      ORIEL_RETURN_IF_ERROR(
          StartReceive(from, target + incoming[from].offset, incoming[from].bytes, /*round=*/0));
    }
    for (int64_t hop = 1; hop < size(); ++hop) {
      const int64_t to = (rank() + hop) % size();
      ORIEL_RETURN_IF_ERROR(
          StartSend(to, source + outgoing[to].offset, outgoing[to].bytes, /*round=*/0));
    }
    return Finish();
  }

  absl::Status GatherBytes(char* target, absl::Span<const Extent> extents) override {
    Begin(TransferKind::kGather);
    const Extent& mine = extents[rank()];
    for (int64_t hop = 1; hop < size(); ++hop) {
      const int64_t from = (rank() + size() - hop) % size();
      ORIEL_RETURN_IF_ERROR(
          StartReceive(from, target + extents[from].offset, extents[from].bytes, /*round=*/0));
    }
    for (int64_t hop = 1; hop < size(); ++hop) {
      ORIEL_RETURN_IF_ERROR(
          StartSend((rank() + hop) % size(), target + mine.offset, mine.bytes, /*round=*/0));
    }
    return Finish();
  }

  absl::Status GatherWhole(char* target, int64_t bytes) override {
    std::vector<Extent> extents;
    for (int64_t rank = 0; rank < size(); ++rank) extents.push_back({rank * bytes, bytes});
    return GatherBytes(target, extents);
  }

  // A binomial tree: of the ranks counted from the root, rank r gets it from r without its highest
  // bit.
  absl::Status BroadcastPart(int64_t root, char* data, int64_t bytes) {
    Begin(TransferKind::kBroadcast);
    const int64_t place = (rank() + size() - root) % size();
    int64_t bit = 1;
    while (bit <= place) bit *= 2;
    if (place > 0) {
      ORIEL_RETURN_IF_ERROR(
          StartReceive((place - bit / 2 + root) % size(), data, bytes, /*round=*/0));
      ORIEL_RETURN_IF_ERROR(Finish());
    }
    for (; place + bit < size(); bit *= 2) {
      ORIEL_RETURN_IF_ERROR(StartSend((place + bit + root) % size(), data, bytes, /*round=*/0));
    }
    return Finish();
  }

  // The transfers of one collective: begun, started, finished.
  void Begin(TransferKind kind) {
    kind_ = kind;
    ++collectives_;
    transfers_.clear();
  }
  absl::Status StartSend(int64_t peer, const char* data, int64_t bytes, int64_t round) {
    return Start(TcpTransport::kSender, peer, const_cast<char*>(data), bytes, round);
  }
  absl::Status StartReceive(int64_t peer, char* data, int64_t bytes, int64_t round) {
    return Start(TcpTransport::kReceiver, peer, data, bytes, round);
  }
  absl::Status Start(TcpTransport::Side side, int64_t peer, char* data, int64_t bytes,
                     int64_t round) {
    const int64_t tag = kMaxTags + collectives_ * kRounds + round;
    absl::StatusOr<std::shared_ptr<TcpTransport::Transfer>> transfer =
        transport_->Start(side, kind_, {world_ranks_[peer], context_, tag}, data, bytes);
    if (transfer.ok()) {
      transfers_.push_back(*std::move(transfer));
      return absl::OkStatus();
    }
    GiveUp();
    return transfer.status();
  }
  absl::Status Finish() {
    for (const auto& transfer : transfers_) {
      absl::Status status = transport_->Wait(*transfer, background_);
      if (status.ok()) continue;
      GiveUp();
      return status;
    }
    transfers_.clear();
    return absl::OkStatus();
  }
  void GiveUp() {
    for (const auto& transfer : transfers_) transport_->GiveUp(transfer);
    transfers_.clear();
  }

  const std::shared_ptr<TcpTransport> transport_;
  const std::vector<int64_t> world_ranks_;  // of the members
  const uint64_t context_;
  const bool is_world_;
  bool background_ = false;
  std::map<std::vector<int64_t>, int64_t> groups_;  // how many of each have been made
  // Of the collective that is under way.
  TransferKind kind_ = TransferKind::kBarrier;
  int64_t collectives_ = 0;
  std::vector<std::shared_ptr<TcpTransport::Transfer>> transfers_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> OpenTcpWorld(const LaunchEnvironment& environment) {
  ORIEL_ASSIGN_OR_RETURN(RankConnections connections, ConnectRanks(environment));
  std::vector<int64_t> ranks(environment.world_size);
  for (size_t i = 0; i < ranks.size(); ++i) ranks[i] = static_cast<int64_t>(i);
  // Each rank of this machine has one more thread, which reads. A rank may be bound to some of the
  // cores that all of them have.
  const int cores = CoresOfQuota(static_cast<int>(std::thread::hardware_concurrency()), CpuQuota());
  const int64_t local = environment.local_world_size.value_or(environment.world_size);
  auto transport =
      std::make_shared<TcpTransport>(std::move(connections), SpinsOf(2 * local, cores));
  return std::make_unique<TcpCommunicator>(std::move(transport), std::move(ranks), environment.rank,
                                           /*context=*/0, /*is_world=*/true);
}

}  // namespace oriel::runtime
