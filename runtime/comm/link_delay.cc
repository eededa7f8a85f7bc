#include "runtime/comm/link_delay.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/base/status.h"
#include "runtime/comm/reduce.h"

namespace oriel::runtime {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

struct Unit {
  const char* name;
  double size;
};
// The longer name first where one ends in another.
constexpr Unit kTimes[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
constexpr Unit kBandwidths[] = {{"kB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}, {"B/s", 1}};

// A number with a unit behind it; false if it is not that.
bool ParseQuantity(absl::string_view text, absl::Span<const Unit> units, double* value) {
  for (const Unit& unit : units) {
    const absl::string_view name = unit.name;
    if (text.size() <= name.size() || text.substr(text.size() - name.size()) != name) continue;
    text.remove_suffix(name.size());
    if (!absl::SimpleAtod(text, value) || !std::isfinite(*value) || *value < 0) return false;
    *value *= unit.size;
    return true;
  }
  return false;
}

// What a rank sends over. Of all its groups and threads.
class DelayedLink {
 public:
  explicit DelayedLink(const LinkDelay& delay) : delay_(delay) {}

  nanoseconds latency() const { return delay_.latency; }
  nanoseconds TimeFor(double bytes) const {
    if (delay_.bandwidth <= 0) return nanoseconds(0);
    return nanoseconds(std::llround(bytes / delay_.bandwidth * 1e9));
  }
  // When the bytes have left it, if they come now.
  Clock::time_point Occupy(double bytes) {
    std::lock_guard<std::mutex> lock(mutex_);
    free_ = std::max(free_, Clock::now()) + TimeFor(bytes);
    return free_;
  }

 private:
  const LinkDelay delay_;
  std::mutex mutex_;
  Clock::time_point free_;
};

// Messages beneath go on meanwhile.
void SleepUntil(Clock::time_point end, Communicator& beneath) {
  constexpr std::chrono::milliseconds kSlice(1);
  for (Clock::time_point now = Clock::now(); now < end; now = Clock::now()) {
    std::this_thread::sleep_until(std::min<Clock::time_point>(now + kSlice, end));
    beneath.Progress();
  }
}

// Ahead of each message goes when it arrives, in nanoseconds of the clock.
class DelayedMessage final : public Message {
 public:
  DelayedMessage(Communicator& beneath, std::shared_ptr<DelayedLink> link, int64_t bytes)
      : beneath_(beneath), link_(std::move(link)), bytes_(bytes) {}

  absl::Status Send(int64_t peer, int64_t tag, const void* data) {
    end_ = link_->Occupy(static_cast<double>(bytes_));
    arrival_ = nanoseconds((end_ + link_->latency()).time_since_epoch()).count();
    ORIEL_ASSIGN_OR_RETURN(header_, beneath_.Send(peer, tag, &arrival_, sizeof arrival_));
    ORIEL_ASSIGN_OR_RETURN(data_, beneath_.Send(peer, tag, data, bytes_));
    return absl::OkStatus();
  }

  absl::Status Receive(int64_t peer, int64_t tag, void* data) {
    receives_ = true;
    ORIEL_ASSIGN_OR_RETURN(header_, beneath_.Receive(peer, tag, &arrival_, sizeof arrival_));
    ORIEL_ASSIGN_OR_RETURN(data_, beneath_.Receive(peer, tag, data, bytes_));
    return absl::OkStatus();
  }

  absl::Status Wait() override {
    if (receives_) {
      end_ = Clock::now() + link_->TimeFor(static_cast<double>(bytes_)) + link_->latency();
    }
    ORIEL_RETURN_IF_ERROR(header_->Wait());
    ORIEL_RETURN_IF_ERROR(data_->Wait());
    if (receives_) {
      const Clock::time_point arrival{
          std::chrono::duration_cast<Clock::duration>(nanoseconds(arrival_))};
      end_ = std::min(end_, arrival);
    }
    SleepUntil(end_, beneath_);
    return absl::OkStatus();
  }

 private:
  Communicator& beneath_;
  const std::shared_ptr<DelayedLink> link_;
  const int64_t bytes_;
  bool receives_ = false;
  Clock::time_point end_;
  int64_t arrival_ = 0;
  std::unique_ptr<Message> header_, data_;
};

class DelayedCommunicator final : public Communicator {
 public:
  DelayedCommunicator(Communicator& beneath, std::shared_ptr<DelayedLink> link)
      : beneath_(beneath), link_(std::move(link)) {}
  DelayedCommunicator(std::unique_ptr<Communicator> beneath, std::shared_ptr<DelayedLink> link)
      : owned_(std::move(beneath)), beneath_(*owned_), link_(std::move(link)) {}

  int64_t rank() const override { return beneath_.rank(); }
  int64_t size() const override { return beneath_.size(); }
  std::string name() const override { return beneath_.name(); }

  absl::StatusOr<std::unique_ptr<Communicator>> Group(const std::vector<int64_t>& ranks) override {
    ORIEL_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> group, beneath_.Group(ranks));
    return std::make_unique<DelayedCommunicator>(std::move(group), link_);
  }

  absl::Status AllReduce(Reduction reduction, absl::Span<const ReduceBuffer> buffers) override {
    ORIEL_RETURN_IF_ERROR(beneath_.AllReduce(reduction, buffers));
    double bytes = 0;
    for (const ReduceBuffer& buffer : buffers) {
      bytes += static_cast<double>(buffer.bytes());
    }
    return Delay(2 * (size() - 1), 2 * bytes * OthersShare());
  }

  absl::Status Broadcast(int64_t root, void* data, int64_t bytes) override {
    ORIEL_RETURN_IF_ERROR(beneath_.Broadcast(root, data, bytes));
    return Delay(size() - 1, static_cast<double>(bytes));
  }

  absl::Status AllGather(absl::Span<const PieceBuffer> buffers) override {
    ORIEL_RETURN_IF_ERROR(beneath_.AllGather(buffers));
    double bytes = 0;  // of all ranks
    for (const PieceBuffer& buffer : buffers) bytes += BytesOf(buffer, buffer.target_blocks);
    return Delay(size() - 1, bytes * OthersShare());
  }

  absl::Status ReduceScatter(Reduction reduction, absl::Span<const PieceBuffer> buffers) override {
    ORIEL_RETURN_IF_ERROR(beneath_.ReduceScatter(reduction, buffers));
    double bytes = 0;
    for (const PieceBuffer& buffer : buffers) bytes += BytesOf(buffer, buffer.source_blocks);
    return Delay(size() - 1, bytes * OthersShare());
  }

  absl::Status AllToAll(absl::Span<const PieceBuffer> buffers) override {
    ORIEL_RETURN_IF_ERROR(beneath_.AllToAll(buffers));
    double bytes = 0;
    for (const PieceBuffer& buffer : buffers) bytes += BytesOf(buffer, buffer.source_blocks);
    return Delay(size() - 1, bytes * OthersShare());
  }

  absl::Status Barrier() override {
    ORIEL_RETURN_IF_ERROR(beneath_.Barrier());
    int64_t hops = 0;
    while (int64_t{1} << hops < size()) ++hops;
    return Delay(hops, 0);
  }

  absl::StatusOr<std::unique_ptr<Message>> Send(int64_t peer, int64_t tag, const void* data,
                                                int64_t bytes) override {
    ORIEL_RETURN_IF_ERROR(CheckMessage("send", peer, tag, data, bytes, size()));
    if (peer == rank()) return beneath_.Send(peer, tag, data, bytes);
    auto message = std::make_unique<DelayedMessage>(beneath_, link_, bytes);
    ORIEL_RETURN_IF_ERROR(message->Send(peer, tag, data));
    return message;
  }

  absl::StatusOr<std::unique_ptr<Message>> Receive(int64_t peer, int64_t tag, void* data,
                                                   int64_t bytes) override {
    ORIEL_RETURN_IF_ERROR(CheckMessage("receive", peer, tag, data, bytes, size()));
    if (peer == rank()) return beneath_.Receive(peer, tag, data, bytes);
    auto message = std::make_unique<DelayedMessage>(beneath_, link_, bytes);
    ORIEL_RETURN_IF_ERROR(message->Receive(peer, tag, data));
    return message;
  }

  void Progress() override { beneath_.Progress(); }
  absl::Status CheckConcurrent() const override { return beneath_.CheckConcurrent(); }
  void SetBackground(bool background) override { beneath_.SetBackground(background); }
  absl::Status Check() override { return beneath_.Check(); }
  void Abort(const absl::Status& reason) override { beneath_.Abort(reason); }

 private:
  // (n-1)/n
  double OthersShare() const {
    return static_cast<double>(size() - 1) / static_cast<double>(size());
  }

  // Of a tensor that is cut into pieces for all ranks.
  double BytesOf(const PieceBuffer& buffer, const Blocks& blocks) const {
    return static_cast<double>(size() * blocks.num_elements() * DTypeBytes(buffer.dtype));
  }

  absl::Status Delay(int64_t hops, double volume) {
    if (size() > 1) SleepUntil(link_->Occupy(volume) + hops * link_->latency(), beneath_);
    return absl::OkStatus();
  }

  const std::unique_ptr<Communicator> owned_;
  Communicator& beneath_;
  const std::shared_ptr<DelayedLink> link_;
};

}  // namespace

absl::StatusOr<LinkDelay> ParseLinkDelay(absl::string_view text) {
  LinkDelay delay;
  bool has_latency = false, has_bandwidth = false;
  for (const absl::string_view item : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(item, absl::MaxSplits('=', 1));
    double value = 0;
    if ((parts.first == "latency" && has_latency) ||
        (parts.first == "bandwidth" && has_bandwidth)) {
      return absl::InvalidArgumentError(absl::StrCat(parts.first, " is given twice"));
    }
    if (parts.first == "latency") {
      if (!ParseQuantity(parts.second, kTimes, &value) || value > 1e12) {
        return absl::InvalidArgumentError(absl::StrCat(
            "'", parts.second, "' is not a time in ns, us, ms or s, as in latency=50us"));
      }
      delay.latency = nanoseconds(std::llround(value));
      has_latency = true;
    } else if (parts.first == "bandwidth") {
      if (!ParseQuantity(parts.second, kBandwidths, &value) || value < 1) {
        return absl::InvalidArgumentError(
            absl::StrCat("'", parts.second,
                         "' is not a bandwidth in B/s, kB/s, MB/s or GB/s, as in bandwidth=1GB/s"));
      }
      delay.bandwidth = value;
      has_bandwidth = true;
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("'", item, "' is neither latency=50us nor bandwidth=1GB/s"));
    }
  }
  return delay;
}

std::unique_ptr<Communicator> DelayCommunication(Communicator& world, const LinkDelay& delay) {
  return std::make_unique<DelayedCommunicator>(world, std::make_shared<DelayedLink>(delay));
}

}  // namespace oriel::runtime
