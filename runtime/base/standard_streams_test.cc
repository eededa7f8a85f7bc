#include "runtime/base/standard_streams.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace oriel::runtime {
namespace {

TEST(StandardStreamsTest, WhatIsClosedIsNobodysNumber) {
  EXPECT_EXIT(
      {
        for (const int stream : {0, 1}) close(stream);
        std::exit(WithStandardStreams("p: ", [] {
          std::printf("lost\n");
          return open("/dev/null", O_RDONLY) > 2 ? 7 : 8;
        }));
      },
      ::testing::ExitedWithCode(7), "");
}

TEST(StandardStreamsTest, AFullDiskIsAnError) {
  EXPECT_EXIT(
      {
        if (std::freopen("/dev/full", "w", stdout) == nullptr) std::exit(2);
        std::exit(WithStandardStreams("p: ", [] {
          std::printf("a result\n");
          return 0;
        }));
      },
      ::testing::ExitedWithCode(1), "^p: cannot write to stdout: No space left on device");
}

// In pieces: what failed first is no longer in the buffer at the end.
TEST(StandardStreamsTest, ADiskThatWasFull) {
  EXPECT_EXIT(
      {
        if (std::freopen("/dev/full", "w", stdout) == nullptr) std::exit(2);
        std::exit(WithStandardStreams("p: ", [] {
          std::printf("a result\n");
          std::fflush(stdout);
          return 0;
        }));
      },
      ::testing::ExitedWithCode(1), "^p: cannot write to stdout");
}

TEST(StandardStreamsTest, AReaderThatHasGoneIsNone) {
  EXPECT_EXIT(
      {
        int ends[2];
        if (pipe(ends) != 0 || dup2(ends[1], 1) != 1) std::exit(2);
        close(ends[0]);
        signal(SIGPIPE, SIG_IGN);
        std::exit(WithStandardStreams("p: ", [] {
          std::printf("a result\n");
          return 0;
        }));
      },
      ::testing::ExitedWithCode(0), "^$");
}

}  // namespace
}  // namespace oriel::runtime
