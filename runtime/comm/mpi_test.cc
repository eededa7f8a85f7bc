// Runs the conformance suite under mpirun; each process is a rank.
//
// With --abort, rank 1 aborts while the others wait: the job must end with its message. With
// --abort-renumbered, it is called 2. With --give-up, rank 0 destroys a send that nobody receives:
// it ends the job, and says which.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/strings/match.h"
#include "runtime/base/status_testing.h"
#include "runtime/comm/conformance.h"
#include "runtime/comm/factory.h"

namespace oriel::runtime {
namespace {

Communicator* world = nullptr;

class MpiConformance : public ::testing::TestWithParam<ConformanceCase> {};

TEST_P(MpiConformance, Case) { GetParam().run(*world); }

INSTANTIATE_TEST_SUITE_P(Mpi, MpiConformance, ::testing::ValuesIn(ConformanceCases()),
                         [](const auto& info) { return info.param.name; });

// The first rank stays, the others turn round.
TEST(Mpi, ConformsByOtherNumbers) {
  std::vector<int64_t> ranks = {0};
  for (int64_t rank = world->size() - 1; rank > 0; --rank) ranks.push_back(rank);
  ORIEL_ASSERT_OK_AND_ASSIGN(auto renumbered, world->Renumber(ranks));
  ASSERT_EQ(renumbered->rank(), (world->size() - world->rank()) % world->size());
  for (const ConformanceCase& test : ConformanceCases()) {
    if (!absl::StrContains(test.name, "Large")) test.run(*renumbered);
  }
  // For the other tests.
  std::sort(ranks.begin(), ranks.end());
  ORIEL_ASSERT_OK(world->Renumber(ranks).status());
}

TEST(Mpi, IsOpenedOnce) {
  EXPECT_THAT(OpenMpiWorld(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                       ::testing::HasSubstr("initialised already")));
}

}  // namespace
}  // namespace oriel::runtime

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  auto opened = oriel::runtime::OpenMpiWorld();
  if (!opened.ok()) {
    std::cerr << opened.status() << "\n";
    return 1;
  }
  oriel::runtime::world = opened->get();
  if (argc > 1 && std::strcmp(argv[1], "--abort") == 0) {
    if ((*opened)->rank() == 1) (*opened)->Abort(absl::InternalError("the batch is missing"));
    char byte = 0;
    if ((*opened)->rank() == 2) {
      auto message = (*opened)->Receive(1, 0, &byte, 1);
      return message.ok() && (*message)->Wait().ok() ? 0 : 1;
    }
    return (*opened)->Barrier().ok() ? 0 : 1;
  }
  if (argc > 1 && std::strcmp(argv[1], "--abort-renumbered") == 0) {
    auto renumbered = (*opened)->Renumber({0, 2, 1});
    if (!renumbered.ok()) return 1;
    if ((*renumbered)->rank() == 2) (*opened)->Abort(absl::InternalError("the batch is missing"));
    return (*renumbered)->Barrier().ok() ? 0 : 1;
  }
  if (argc > 1 && std::strcmp(argv[1], "--give-up") == 0) {
    if ((*opened)->rank() == 0) {
      const std::vector<char> data(1'000'000);
      if (!(*opened)->Send(1, 8, data.data(), 1'000'000).ok()) return 1;
    }
    return (*opened)->Barrier().ok() ? 0 : 1;
  }
  return RUN_ALL_TESTS();
}
