// What a rank in a process of its own tells the launcher that started it.
//
// The launcher listens on a Unix socket; each rank connects and sends lines:
//
//   start RANK             and once more if the plan has another number for it
//   error CODE MESSAGE     before it ends because of an error (absl::StatusCode as a number)
//   done EXIT_STATUS       before it ends regularly
//
// A connection that closes without one of the last two is a rank that was killed. The kernel tells
// the launcher whose connection it is, so that it signals nobody else's processes.
#ifndef ORIEL_RUNTIME_LAUNCH_RANK_LINK_H_
#define ORIEL_RUNTIME_LAUNCH_RANK_LINK_H_

#include <sys/socket.h>
#include <sys/un.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace oriel::runtime {

// Holds the socket's name for the ranks; a name of Linux's abstract namespace.
inline constexpr char kLauncherSocketVariable[] = "ORIEL_LAUNCHER_SOCKET";
// "tcp": the launcher has started each rank itself, and set RANK and WORLD_SIZE.
inline constexpr char kLauncherCommVariable[] = "ORIEL_LAUNCHER_COMM";
// "1" if the launcher's stderr is a terminal, which a rank cannot see through a pipe.
inline constexpr char kTerminalVariable[] = "ORIEL_LAUNCHER_TERMINAL";

// The rank's end. Without a launcher (under a bare mpirun) all calls do nothing.
class RankLink {
 public:
  RankLink();
  ~RankLink();
  RankLink(const RankLink&) = delete;
  RankLink& operator=(const RankLink&) = delete;

  bool connected() const { return fd_ >= 0; }
  void Start(int64_t rank);
  void Error(const absl::Status& status);
  void Done(int exit_status);

 private:
  void Send(const std::string& line);

  int fd_ = -1;
};

// The address of an abstract socket; returns its length. Names are at most 100 bytes long.
socklen_t FillAbstractAddress(const std::string& name, sockaddr_un* address);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_LAUNCH_RANK_LINK_H_
