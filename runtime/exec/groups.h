// The communication groups that a rank's program uses.
#ifndef ORIEL_RUNTIME_EXEC_GROUPS_H_
#define ORIEL_RUNTIME_EXEC_GROUPS_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/comm/communicator.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/plan_types.h"

namespace oriel::runtime {

// A collective over atomic axes runs in the group of ranks whose coordinates on all other axes
// of the grid are equal.
class CommunicationGroups {
 public:
  // Makes every group that `rank`'s program needs. Collective over `world`: ranks make their
  // groups in the same order (that of the axes' names), so that none waits for another in a circle.
  // `world` may be null if every group is of one rank.
  static absl::StatusOr<CommunicationGroups> Create(const plan::Plan& plan,
                                                    const plan::Program& program, int64_t rank,
                                                    Communicator* world);

  // Null where the group is this rank alone.
  Communicator* Find(const plan::Collective& collective) const;

  // This rank's piece of what is cut over the axes; of a collective's group that is its rank.
  GridLayout::Piece PieceOf(const google::protobuf::RepeatedPtrField<std::string>& axes) const;

 private:
  using Axes = std::vector<std::string>;
  static Axes Key(const plan::Collective& collective);

  std::map<Axes, std::unique_ptr<Communicator>> groups_;
  std::optional<GridLayout> layout_;
  int64_t rank_ = 0;
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_EXEC_GROUPS_H_
