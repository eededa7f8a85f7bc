// Any bytes as a shard: the index lies within the file, and a sample is read or refused.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/train/data/sample_reader.h"
#include "runtime/train/data/tar_shards.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/input_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using oriel::fuzz::check;
  namespace rt = oriel::runtime;
  static oriel::fuzz::InputFolder folder;
  folder.write("shard.tar", data, size);
  absl::StatusOr<rt::ShardIndex> read = rt::ShardIndex::Read(folder.path());
  if (!read.ok()) {
    std::string message(read.status().message());
    check(message.rfind(folder.path(), 0) == 0, "the error names the place", message);
    return 0;
  }
  oriel::fuzz::accepted();
  auto index = std::make_shared<const rt::ShardIndex>(*std::move(read));
  for (int64_t i = 0; i < index->size() && i < 4; ++i) {
    for (const std::string& name : index->member_names()) {
      const rt::ShardMember* member = index->Find(index->sample(i), name);
      if (member == nullptr) continue;
      check(member->offset >= 0 && member->size >= 0 &&
                member->offset + member->size <= static_cast<int64_t>(size),
            "a member lies within the file", name);
      rt::BatchInput input;
      input.name = name;
      input.sample = {rt::DType::kF32, {2, 3}};
      rt::SampleReader reader(index, {input});
      std::vector<char> target(input.sample.bytes());
      (void)reader.Read(i, {target.data()});
    }
  }
  return 0;
}
