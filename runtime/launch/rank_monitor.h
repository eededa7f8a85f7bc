// The launcher's end of the links to its ranks.
#ifndef ORIEL_RUNTIME_LAUNCH_RANK_MONITOR_H_
#define ORIEL_RUNTIME_LAUNCH_RANK_MONITOR_H_

#include <poll.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace oriel::runtime {

// Listens for ranks and keeps what they said. One thread uses it.
class RankMonitor {
 public:
  static absl::StatusOr<RankMonitor> Listen();
  RankMonitor(RankMonitor&& other) noexcept;
  RankMonitor& operator=(RankMonitor&&) = delete;
  ~RankMonitor();

  const std::string& socket_name() const { return name_; }

  // Appends the descriptors to be polled for input.
  void AddPollTargets(std::vector<pollfd>& targets) const;
  // Takes what is there; never blocks.
  void Update();

  // Why the job fails: the first rank that had an error of its own or was killed, in the order
  // that this became known. Echoes (Aborted, because a peer failed) count only if nothing else
  // is there.
  struct Failure {
    int64_t rank = -1;
    pid_t pid = 0;
    std::optional<absl::Status> error;  // nothing: killed
  };
  std::optional<Failure> failure() const;
  // What has been heard of a process.
  enum class Heard : uint8_t { kNothing, kStart, kEnd };
  Heard HeardOf(pid_t pid) const;
  // Of ranks that have not ended.
  std::vector<pid_t> running() const;
  bool any_started() const { return started_ > 0; }
  // What rank 0 said at its end.
  std::optional<int> exit_status() const { return exit_status_; }

 private:
  struct Link {
    int fd = -1;  // -1 when closed
    std::string received;
    int64_t rank = -1;
    pid_t pid = 0;
    bool ended = false;  // said that it would
  };

  RankMonitor(std::string name, int listener) : name_(std::move(name)), listener_(listener) {}
  void Accept();
  // False at the end of the stream.
  bool Receive(Link& link);
  void HandleLine(Link& link, const std::string& line);
  void HandleEnd(Link& link);

  std::string name_;
  int listener_;
  std::vector<Link> links_;
  int64_t started_ = 0;
  std::vector<Failure> failures_;
  std::optional<int> exit_status_;
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_LAUNCH_RANK_MONITOR_H_
