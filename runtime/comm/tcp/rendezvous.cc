#include "runtime/comm/tcp/rendezvous.h"

#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status.h"

namespace oriel::runtime {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kMagic[8] = {'O', 'R', 'I', 'E', 'L', 'T', 'C', '1'};
constexpr uint32_t kMaxText = 4096;
// A connection that does not say at once who it is is none of ours.
constexpr std::chrono::seconds kHelloPatience{3};

// What a rank says to rank 0. Behind it comes the job's name.
struct Hello {
  char magic[8];
  uint32_t world_size;
  uint32_t rank;
  uint32_t port;  // where it listens
  uint32_t job_bytes;
};

// What a rank says to one below it.
struct Greeting {
  char magic[8];
  uint64_t nonce;
  uint64_t rank;
};

enum Verdict : uint32_t { kWelcome = 1, kRefused = 2, kFailed = 3 };

absl::Status WriteText(const Socket& socket, const std::string& text, Deadline deadline) {
  const uint32_t bytes = static_cast<uint32_t>(std::min<size_t>(text.size(), kMaxText));
  ORIEL_RETURN_IF_ERROR(WriteBefore(socket, &bytes, sizeof bytes, deadline));
  return WriteBefore(socket, text.data(), bytes, deadline);
}

absl::StatusOr<std::string> ReadText(const Socket& socket, uint32_t bytes, Deadline deadline) {
  if (bytes > kMaxText) return absl::DataLossError("a text of impossible length");
  std::string text(bytes, '\0');
  ORIEL_RETURN_IF_ERROR(ReadBefore(socket, text.data(), bytes, deadline));
  return text;
}

absl::StatusOr<std::string> ReadText(const Socket& socket, Deadline deadline) {
  uint32_t bytes = 0;
  ORIEL_RETURN_IF_ERROR(ReadBefore(socket, &bytes, sizeof bytes, deadline));
  return ReadText(socket, bytes, deadline);
}

std::string Place(const LaunchEnvironment& environment) {
  return absl::StrCat(environment.master_address, ":", environment.master_port);
}

// The other end has closed the connection.
bool HasClosed(const Socket& socket) {
  char byte;
  return recv(socket.fd(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

// A connection to each of thousands of ranks takes more files than a process has at first.
void AllowManyFiles() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

struct Member {
  Socket socket;
  std::string address;
  uint32_t port = 0;
};

// Rank 0's part.
class Host {
 public:
  Host(const LaunchEnvironment& environment, Deadline deadline)
      : environment_(environment), deadline_(deadline), members_(environment.world_size) {}

  absl::StatusOr<std::vector<Member>> Gather(uint64_t nonce) {
    absl::StatusOr<Socket> listener = ListenAt(environment_.master_port);
    if (absl::IsAlreadyExists(listener.status())) {
      return absl::AlreadyExistsError(absl::StrCat(
          "rank 0 can't listen at port ", environment_.master_port,
          ": another process of this machine does; set MASTER_PORT (or ORIEL_MASTER_PORT) to a "
          "free port on all ranks, and give RANK=0 to one process only"));
    }
    ORIEL_RETURN_IF_ERROR(listener.status());
    absl::Status status;
    while (status.ok() && missing_ > 0) {
      absl::StatusOr<Socket> socket = AcceptBefore(*listener, deadline_);
      status = socket.ok() ? Admit(*std::move(socket)) : Missing();
    }
    if (!status.ok()) {
      for (const Member& member : members_) Tell(member.socket, kFailed, status);
      return status;
    }
    for (size_t rank = 1; rank < members_.size(); ++rank) {
      ORIEL_RETURN_IF_ERROR(Annotate(Welcome(members_[rank].socket, nonce),
                                     absl::StrCat("rank ", rank, " has gone")));
    }
    return std::move(members_);
  }

 private:
  // A connection that has come. An error ends the job; strangers are sent away.
  absl::Status Admit(Socket socket) {
    const Deadline patience = std::min<Deadline>(deadline_, Clock::now() + kHelloPatience);
    Hello hello;
    if (!ReadBefore(socket, &hello, sizeof hello, patience).ok() ||
        std::memcmp(hello.magic, kMagic, sizeof kMagic) != 0) {
      return absl::OkStatus();
    }
    absl::StatusOr<std::string> job = ReadText(socket, hello.job_bytes, patience);
    if (!job.ok()) return absl::OkStatus();
    const std::string address = PeerAddress(socket);
    if (*job != environment_.job) {
      Tell(socket, kRefused,
           absl::InvalidArgumentError(absl::StrCat("rank 0 is of job '", environment_.job,
                                                   "', this process of job '", *job, "'")));
      return absl::OkStatus();
    }
    absl::Status wrong;
    if (hello.world_size != environment_.world_size) {
      wrong = absl::InvalidArgumentError(absl::StrCat(
          "rank ", hello.rank, " (", address, ") was started with WORLD_SIZE=", hello.world_size,
          ", rank 0 with WORLD_SIZE=", environment_.world_size));
    } else if (hello.rank == 0 || hello.rank >= hello.world_size) {
      wrong = absl::InvalidArgumentError(absl::StrCat("a second process (", address,
                                                      ") was started with RANK=", hello.rank,
                                                      "; each needs a RANK of its own"));
    } else if (Member& member = members_[hello.rank]; !member.socket.is_open()) {
      member = {std::move(socket), address, hello.port};
      --missing_;
      return absl::OkStatus();
    } else if (HasClosed(member.socket)) {
      member = {std::move(socket), address, hello.port};  // it was started again
      return absl::OkStatus();
    } else {
      wrong = absl::InvalidArgumentError(
          absl::StrCat("two processes (", member.address, " and ", address,
                       ") were started with RANK=", hello.rank, "; each needs a RANK of its own"));
    }
    Tell(socket, kFailed, wrong);
    return wrong;
  }

  absl::Status Missing() const {
    std::vector<std::string> ranks;
    for (size_t rank = 1; rank < members_.size() && ranks.size() < 8; ++rank) {
      if (!members_[rank].socket.is_open()) ranks.push_back(absl::StrCat(rank));
    }
    return absl::DeadlineExceededError(absl::StrCat(
        missing_ == 1 ? "rank " : "ranks ", absl::StrJoin(ranks, ", "),
        missing_ > static_cast<int64_t>(ranks.size()) ? ", .." : "", " of ",
        environment_.world_size, " did not come to ", Place(environment_), " within ",
        environment_.timeout.count(),
        " s; start each with its RANK and the same MASTER_ADDR, MASTER_PORT and WORLD_SIZE "
        "(ORIEL_RENDEZVOUS_TIMEOUT: seconds to wait)"));
  }

  static void Tell(const Socket& socket, uint32_t verdict, const absl::Status& status) {
    if (!socket.is_open()) return;
    const Deadline soon = Clock::now() + kHelloPatience;
    const uint32_t words[] = {verdict, static_cast<uint32_t>(status.code())};
    if (WriteBefore(socket, words, sizeof words, soon).ok()) {
      static_cast<void>(WriteText(socket, std::string(status.message()), soon));
    }
  }

  absl::Status Welcome(const Socket& socket, uint64_t nonce) {
    const uint32_t words[] = {kWelcome, 0};
    ORIEL_RETURN_IF_ERROR(WriteBefore(socket, words, sizeof words, deadline_));
    ORIEL_RETURN_IF_ERROR(WriteBefore(socket, &nonce, sizeof nonce, deadline_));
    for (const Member& member : members_) {
      ORIEL_RETURN_IF_ERROR(WriteBefore(socket, &member.port, sizeof member.port, deadline_));
      ORIEL_RETURN_IF_ERROR(WriteText(socket, member.address, deadline_));
    }
    return absl::OkStatus();
  }

  const LaunchEnvironment& environment_;
  const Deadline deadline_;
  std::vector<Member> members_;
  int64_t missing_ = environment_.world_size - 1;
};

// What a rank learns from rank 0.
struct Invitation {
  uint64_t nonce = 0;
  std::vector<Member> members;  // that of rank 0 has a socket
  Socket listener;              // to which those above connect
};

absl::StatusOr<Invitation> ReadInvitation(const LaunchEnvironment& environment, Socket socket,
                                          Deadline deadline) {
  uint32_t words[2];
  ORIEL_RETURN_IF_ERROR(ReadBefore(socket, words, sizeof words, deadline));
  if (words[0] == kRefused || words[0] == kFailed) {
    ORIEL_ASSIGN_OR_RETURN(const std::string text, ReadText(socket, deadline));
    // Of another job is perhaps what is about to end.
    return words[0] == kRefused ? absl::UnavailableError(text)
                                : absl::Status(static_cast<absl::StatusCode>(words[1]), text);
  }
  if (words[0] != kWelcome) return absl::UnavailableError("what listens there is not Oriel");
  Invitation invitation;
  ORIEL_RETURN_IF_ERROR(ReadBefore(socket, &invitation.nonce, sizeof(uint64_t), deadline));
  const std::string host = PeerAddress(socket), own = OwnAddress(socket);
  for (int64_t rank = 0; rank < environment.world_size; ++rank) {
    Member member;
    ORIEL_RETURN_IF_ERROR(ReadBefore(socket, &member.port, sizeof member.port, deadline));
    ORIEL_ASSIGN_OR_RETURN(member.address, ReadText(socket, deadline));
    // Who is on rank 0's machine is where rank 0 is, seen from here.
    if (rank == 0 || (IsLoopback(member.address) && !IsLoopback(own))) member.address = host;
    invitation.members.push_back(std::move(member));
  }
  invitation.members[0].socket = std::move(socket);
  return invitation;
}

// The part of the others. Tries until the deadline.
absl::StatusOr<Invitation> Ask(const LaunchEnvironment& environment, Deadline deadline) {
  Hello hello = {};
  std::memcpy(hello.magic, kMagic, sizeof kMagic);
  hello.world_size = static_cast<uint32_t>(environment.world_size);
  hello.rank = static_cast<uint32_t>(environment.rank);
  hello.job_bytes = static_cast<uint32_t>(std::min<size_t>(environment.job.size(), kMaxText));
  Socket listener;
  auto pause = std::chrono::milliseconds(20);
  std::string answer;  // the last one
  while (true) {
    absl::Status status;
    absl::StatusOr<Socket> socket =
        ConnectOnce(environment.master_address, environment.master_port, deadline);
    // Not before rank 0 listens: on its machine, any free port could be the one that it will ask
    // for.
    if (socket.ok() && !listener.is_open()) {
      ORIEL_ASSIGN_OR_RETURN(listener, ListenAt(0));
      ORIEL_ASSIGN_OR_RETURN(const int port, PortOf(listener));
      hello.port = static_cast<uint32_t>(port);
    }
    if (!socket.ok()) {
      status = socket.status();
    } else if (status = WriteBefore(*socket, &hello, sizeof hello, deadline); status.ok()) {
      status = WriteBefore(*socket, environment.job.data(), hello.job_bytes, deadline);
    }
    if (status.ok()) {
      // Rank 0 says who is missing, and its clock may have begun to run later.
      absl::StatusOr<Invitation> invitation = ReadInvitation(
          environment, *std::move(socket), deadline + environment.timeout + kHelloPatience);
      if (invitation.ok()) {
        invitation->listener = std::move(listener);
        return invitation;
      }
      status = invitation.status();
      answer = std::string(status.message());
    }
    if (!absl::IsUnavailable(status) && !absl::IsNotFound(status)) return status;
    if (Clock::now() + pause > deadline) {
      return absl::DeadlineExceededError(absl::StrCat(
          "rank ", environment.rank, " did not reach rank 0 at ", Place(environment), " within ",
          environment.timeout.count(), " s (",
          answer.empty() ? std::string(status.message()) : answer,
          "); MASTER_ADDR and MASTER_PORT say where rank 0 is: start it, or correct them"));
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::milliseconds(500));
  }
}

// Of a rank above 0: to those below it it connects, those above come.
absl::Status ConnectPeers(int64_t rank, Invitation& invitation, Deadline deadline) {
  std::vector<Member>& members = invitation.members;
  Greeting greeting = {};
  std::memcpy(greeting.magic, kMagic, sizeof kMagic);
  greeting.nonce = invitation.nonce;
  greeting.rank = static_cast<uint64_t>(rank);
  for (int64_t peer = 1; peer < rank; ++peer) {
    const auto where = [&] {
      return absl::StrCat("rank ", rank, " can't connect to rank ", peer, " at ",
                          members[peer].address, ":", members[peer].port);
    };
    absl::StatusOr<Socket> socket =
        ConnectOnce(members[peer].address, static_cast<int>(members[peer].port), deadline);
    if (!socket.ok()) return Annotate(socket.status(), where());
    ORIEL_RETURN_IF_ERROR(
        Annotate(WriteBefore(*socket, &greeting, sizeof greeting, deadline), where()));
    members[peer].socket = *std::move(socket);
  }
  for (int64_t missing = static_cast<int64_t>(members.size()) - rank - 1; missing > 0;) {
    absl::StatusOr<Socket> socket = AcceptBefore(invitation.listener, deadline);
    if (!socket.ok()) {
      return absl::DeadlineExceededError(
          absl::StrCat(missing, " of the ranks above ", rank, " did not connect to it"));
    }
    const Deadline patience = std::min<Deadline>(deadline, Clock::now() + kHelloPatience);
    if (!ReadBefore(*socket, &greeting, sizeof greeting, patience).ok() ||
        std::memcmp(greeting.magic, kMagic, sizeof kMagic) != 0 ||
        greeting.nonce != invitation.nonce || greeting.rank <= static_cast<uint64_t>(rank) ||
        greeting.rank >= members.size() || members[greeting.rank].socket.is_open()) {
      continue;
    }
    members[greeting.rank].socket = *std::move(socket);
    --missing;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RankConnections> ConnectRanks(const LaunchEnvironment& environment) {
  const Deadline deadline = Clock::now() + environment.timeout;
  RankConnections result;
  result.rank = environment.rank;
  result.sockets.resize(environment.world_size);
  result.addresses.resize(environment.world_size, "here");
  if (environment.world_size == 1) return result;
  AllowManyFiles();
  std::vector<Member> members;
  if (environment.rank == 0) {
    std::random_device random;
    const uint64_t nonce = (static_cast<uint64_t>(random()) << 32) | random();
    ORIEL_ASSIGN_OR_RETURN(members, Host(environment, deadline).Gather(nonce));
  } else {
    ORIEL_ASSIGN_OR_RETURN(Invitation invitation, Ask(environment, deadline));
    // All have come by now.
    ORIEL_RETURN_IF_ERROR(
        ConnectPeers(environment.rank, invitation, Clock::now() + environment.timeout));
    members = std::move(invitation.members);
  }
  for (int64_t rank = 0; rank < environment.world_size; ++rank) {
    if (rank == environment.rank) continue;
    result.sockets[rank] = std::move(members[rank].socket);
    result.addresses[rank] = members[rank].address;
    TuneForRanks(result.sockets[rank]);
  }
  return result;
}

}  // namespace oriel::runtime
