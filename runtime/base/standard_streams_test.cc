#include "runtime/base/standard_streams.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace oriel::runtime {
namespace {

// A program that prints to stdout; where it flushes, what fails is no longer in the buffer at the
// end.
int Print(bool flushes) {
  return WithStandardStreams("p: ", [&] {
    std::printf("a result\n");
    if (flushes) std::fflush(stdout);
    return 0;
  });
}

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
        std::exit(Print(/*flushes=*/false));
      },
      ::testing::ExitedWithCode(1), "^p: cannot write to stdout: No space left on device");
  EXPECT_EXIT(
      {
        if (std::freopen("/dev/full", "w", stdout) == nullptr) std::exit(2);
        std::exit(Print(/*flushes=*/true));
      },
      ::testing::ExitedWithCode(1), "^p: cannot write to stdout");
}

TEST(StandardStreamsTest, AReaderThatHasGoneIsNone) {
  for (const bool flushes : {false, true}) {
    EXPECT_EXIT(
        {
          int ends[2];
          if (pipe(ends) != 0 || dup2(ends[1], 1) != 1) std::exit(2);
          close(ends[0]);
          signal(SIGPIPE, SIG_IGN);
          std::exit(Print(flushes));
        },
        ::testing::ExitedWithCode(0), "^$");
  }
}

}  // namespace
}  // namespace oriel::runtime
