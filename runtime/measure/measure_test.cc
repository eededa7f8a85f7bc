#include "runtime/measure/measure.h"

#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <thread>

#include "runtime/comm/in_process.h"
#include "runtime/comm/link_delay.h"

namespace oriel::runtime {
namespace {

double NumberOf(const Measurement& measurement, const std::string& name) {
  for (const auto& [key, value] : measurement.numbers) {
    if (key == name) return value;
  }
  ADD_FAILURE() << measurement.what << " has no " << name;
  return 0;
}

TEST(MeasureTest, LargerWorkTakesLonger) {
  const absl::StatusOr<std::vector<Measurement>> found = MeasureKernels(1, nullptr);
  ASSERT_TRUE(found.ok()) << found.status();
  std::map<std::string, int> kinds;
  std::map<double, double> products, bytes;
  for (const Measurement& each : *found) {
    ++kinds[each.what];
    EXPECT_GT(NumberOf(each, "seconds"), 0) << MeasurementJson(each);
    if (each.what == "bytes") bytes[NumberOf(each, "bytes")] = NumberOf(each, "seconds");
    if (each.what == "product" && NumberOf(each, "element_bytes") == 4) {
      products[NumberOf(each, "rows") * NumberOf(each, "columns") * NumberOf(each, "depth")] =
          NumberOf(each, "seconds");
    }
  }
  EXPECT_GE(kinds["product"], 8);
  EXPECT_GE(kinds["attention"], 4);
  EXPECT_GE(kinds["bytes"], 4);
  EXPECT_GT(products.rbegin()->second, 4 * products.begin()->second);
  EXPECT_GT(bytes.rbegin()->second, 4 * bytes.begin()->second);
}

// Four ranks over a network so slow that nothing else counts.
TEST(MeasureTest, CollectivesTakeWhatTheirLinksTake) {
  LinkDelay delay;
  delay.bandwidth = 2e8;
  std::vector<std::unique_ptr<Communicator>> worlds = MakeInProcessWorld(4);
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::vector<Measurement> first;
  for (auto& world : worlds) {
    threads.emplace_back([&] {
      const std::unique_ptr<Communicator> slow = DelayCommunication(*world, delay);
      const absl::StatusOr<std::vector<Measurement>> found = MeasureCollectives(slow.get());
      std::lock_guard<std::mutex> lock(mutex);
      ASSERT_TRUE(found.ok()) << found.status();
      if (world->rank() == 0) first = *found;
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::map<std::string, int> large;
  for (const Measurement& each : first) {
    if (each.what == "overlap") {
      // A link that only waits leaves the cores to the products.
      EXPECT_LT(NumberOf(each, "seconds"),
                0.95 * (NumberOf(each, "computing") + NumberOf(each, "communicating")));
      ++large[each.what];
      continue;
    }
    const double sent = NumberOf(each, "sent_bytes");
    if (sent < 1e6) continue;
    ++large[each.what];
    EXPECT_GT(NumberOf(each, "seconds"), 0.99 * sent / delay.bandwidth) << MeasurementJson(each);
    // Other processes may take the cores.
    EXPECT_LT(NumberOf(each, "seconds"), 30 * sent / delay.bandwidth) << MeasurementJson(each);
  }
  EXPECT_EQ(large["all_reduce"], 2);  // of two ranks and of four
  EXPECT_EQ(large["all_gather"], 2);
  EXPECT_EQ(large["transfer"], 1);
  EXPECT_EQ(large["overlap"], 1);
}

TEST(MeasureTest, OneRankHasNoCollectives) {
  const absl::StatusOr<std::vector<Measurement>> found = MeasureCollectives(nullptr);
  ASSERT_TRUE(found.ok());
  EXPECT_TRUE(found->empty());
}

TEST(MeasureTest, WritesJson) {
  EXPECT_EQ(MeasurementJson({"bytes", {{"bytes", 25276493824}, {"seconds", 1.5e-7}}}),
            R"({"measure": "bytes", "bytes": 25276493824, "seconds": 1.5e-07})");
}

}  // namespace
}  // namespace oriel::runtime
