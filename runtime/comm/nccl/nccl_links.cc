#include "runtime/comm/nccl/nccl_links.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"

namespace oriel::runtime {
namespace {

// Blocks of a device that a message may take. A receive that is put early holds them until its
// message comes; NCCL_MAX_CTAS of the environment goes before.
constexpr int kMaxBlocks = 2;

class NcclLink final : public Link {
 public:
  NcclLink(std::shared_ptr<NcclWorld> world, std::unique_ptr<NcclGroup> group, LinkEnds ends,
           bool sends)
      : world_(std::move(world)), group_(std::move(group)), ends_(ends), sends_(sends) {}

  absl::Status Put(void* data, int64_t bytes, void* stream, const std::string& what) override {
    ORIEL_RETURN_IF_ERROR(world_->device().MakeCurrent());
    const auto on = static_cast<CUstream>(stream);
    const std::string text =
        absl::StrCat("rank ", sends_ ? ends_.sender : ends_.receiver, ", ", what, ": ",
                     sends_ ? "send to" : "receive from", " rank ",
                     sends_ ? ends_.receiver : ends_.sender, " (", bytes, " bytes)");
    ORIEL_RETURN_IF_ERROR(group_->Call(text, [&](ncclComm_t comm) {
      return sends_ ? world_->nccl().ncclSend(data, bytes, ncclUint8, /*peer=*/1, comm, on)
                    : world_->nccl().ncclRecv(data, bytes, ncclUint8, /*peer=*/0, comm, on);
    }));
    return world_->Follow(on, text);
  }

 private:
  const std::shared_ptr<NcclWorld> world_;
  const std::unique_ptr<NcclGroup> group_;  // rank 0 sends
  const LinkEnds ends_;
  const bool sends_;
};

}  // namespace

absl::StatusOr<std::vector<std::unique_ptr<Link>>> OpenNcclLinks(
    const std::shared_ptr<NcclWorld>& world, const std::vector<LinkEnds>& ends) {
  std::vector<std::unique_ptr<Link>> links;
  for (const LinkEnds& end : ends) {
    const bool sends = world->host().rank() == end.sender;
    ORIEL_ASSIGN_OR_RETURN(
        std::unique_ptr<NcclGroup> group,
        NcclGroup::CreatePair(world, sends ? end.receiver : end.sender, sends, kMaxBlocks));
    links.push_back(std::make_unique<NcclLink>(world, std::move(group), end, sends));
  }
  return links;
}

}  // namespace oriel::runtime
