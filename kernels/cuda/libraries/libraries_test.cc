#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cuda/libraries/cublaslt.h"
#include "kernels/cuda/libraries/library.h"

namespace oriel::kernels::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(LibraryTest, MissingLibraryNamesTheRemedy) {
  const LibraryName name = {"liboriel_no_such.so.9", "NoSuch 9", "install NoSuch"};
  const absl::Status status = LoadLibrary(name).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("NoSuch 9 can't be loaded"), HasSubstr("liboriel_no_such.so.9"),
                    HasSubstr("install NoSuch")));
}

TEST(LibraryTest, OldLibraryNamesTheSymbol) {
  const LibraryName name = {"libc.so.6", "C 99", "get a newer one"};
  const absl::StatusOr<void*> library = LoadLibrary(name);
  ASSERT_TRUE(library.ok()) << library.status();
  void* address = nullptr;
  ASSERT_TRUE(FindSymbolAddress(*library, name, "memcpy", &address).ok());
  const absl::Status status = FindSymbolAddress(*library, name, "no_such_function", &address);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("libc.so.6 has no no_such_function"), HasSubstr("older than C 99")));
}

// Loading it needs no GPU.
TEST(CublasLtTest, EverySymbolIsThere) {
  const absl::StatusOr<const CublasLt*> table = SystemCublasLt();
  if (absl::IsUnavailable(table.status()) &&
      table.status().message().find("can't be loaded") != absl::string_view::npos) {
    GTEST_SKIP() << table.status();
  }
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_GE((*table)->cublasLtGetVersion(), size_t{130000});
  const absl::Status status =
      CublasLtStatus(**table, CUBLAS_STATUS_NOT_SUPPORTED, "cublasLtMatmul");
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("cublasLtMatmul"), HasSubstr("CUBLAS_STATUS_NOT_SUPPORTED")));
  EXPECT_TRUE(CublasLtStatus(**table, CUBLAS_STATUS_SUCCESS, "cublasLtMatmul").ok());
}

}  // namespace
}  // namespace oriel::kernels::cuda
