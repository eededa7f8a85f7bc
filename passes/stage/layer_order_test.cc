#include "passes/stage/layer_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace oriel {
namespace {

using ::testing::ElementsAre;

TEST(LayerOrder, AChainStays) {
  EXPECT_THAT(layerOrder({{}, {0}, {1}}), ElementsAre(0, 1, 2));
  EXPECT_THAT(layerOrder({}), ElementsAre());
}

TEST(LayerOrder, TheLongerChainComesFirst) {
  // Op 4 reads the end of the chain 1 2 3 last, but it comes before op 0.
  EXPECT_THAT(layerOrder({{}, {}, {1}, {2}, {0, 3}}), ElementsAre(1, 2, 3, 0, 4));
}

TEST(LayerOrder, ProgramOrderOfTowersDoesNotMatter) {
  // Two chains op by op in turn, that meet in op 4.
  EXPECT_THAT(layerOrder({{}, {}, {0}, {1}, {2, 3}}), ElementsAre(0, 2, 1, 3, 4));
}

TEST(LayerOrder, KeysOfAnEncoderAreInTheLayerThatReadsThem) {
  // Encoder 0 1 2. Two decoder layers, each: query (of the layer before), key of the encoder, both
  // read by the layer's output.
  const std::vector<std::vector<int>> operands = {
      {},  {0}, {1},      // encoder
      {},  {2}, {3, 4},   // start of the decoder, key, layer 0
      {5}, {2}, {6, 7},   // query, key, layer 1
      {8}, {2}, {9, 10},  // query, key, layer 2
  };
  EXPECT_THAT(layerOrder(operands), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
}

TEST(LayerOrder, WhatIsReadTwiceByAnOpIsThereOnce) {
  EXPECT_THAT(layerOrder({{}, {0, 0}}), ElementsAre(0, 1));
}

}  // namespace
}  // namespace oriel
