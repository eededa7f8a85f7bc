// Small data sets and folders for tests.
#ifndef ORIEL_RUNTIME_TRAIN_DATA_TESTING_H_
#define ORIEL_RUNTIME_TRAIN_DATA_TESTING_H_

#include <string>
#include <utility>
#include <vector>

#include "runtime/base/folder_testing.h"
#include "runtime/base/tensor.h"

namespace oriel::runtime {

// Cuts the last `bytes` off a file.
void Truncate(const std::string& path, int64_t bytes);

// The bytes of an .npy array, header written as numpy does.
std::string NpyBytes(const TensorSpec& spec, const void* data);
std::string NpyBytes(const Shape& shape, const std::vector<float>& values);
std::string NpyBytes(const Shape& shape, const std::vector<int64_t>& values);

// Members in order: (name, bytes).
using TarMembers = std::vector<std::pair<std::string, std::string>>;
void WriteTar(const std::string& path, const TarMembers& members);

// Shards of `count` samples, `per_shard` in each: x is f32[3] (i, i+1, i+2), labels i64[2]
// (i, -100), key "%06d".
void WriteCountingShards(const std::string& folder, int64_t count, int64_t per_shard);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_TRAIN_DATA_TESTING_H_
