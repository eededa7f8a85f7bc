#include "passes/stage/towers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace oriel {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A chain of ops, a letter for each kind; capitals have weights. An op reads the one before; '+'
// reads the last '.' or '+' before it too, as a residual sum does.
std::vector<SequenceOp> chain(const std::string& kinds) {
  std::vector<SequenceOp> ops;
  int residual = -1;
  for (char kind : kinds) {
    const int place = static_cast<int>(ops.size());
    SequenceOp op;
    op.kind = kind;
    op.cost = 1;
    op.bytes = 8;
    op.hasWeight = kind >= 'A' && kind <= 'Z';
    if (place > 0) op.operands.push_back(place - 1);
    if (kind == '+' && residual >= 0) op.operands.push_back(residual);
    if (kind == '+' || kind == '.') residual = place;
    ops.push_back(std::move(op));
  }
  return ops;
}

// The blocks as text, "ab ab|cd cd".
std::string towersOf(const std::string& kinds, const std::vector<SequenceOp>& ops) {
  std::string text;
  for (const Tower& tower : findTowers(ops)) {
    if (!text.empty()) text += '|';
    for (size_t i = 0; i < tower.size(); ++i) {
      if (i > 0) text += ' ';
      text += kinds.substr(tower[i].begin, tower[i].end - tower[i].begin);
    }
  }
  return text;
}

std::string towersOf(const std::string& kinds) { return towersOf(kinds, chain(kinds)); }

TEST(Towers, WhatRepeatsIsATower) {
  EXPECT_EQ(towersOf("eLgLgLgh"), "Lg Lg Lg");
  EXPECT_EQ(towersOf("LgLg"), "Lg Lg");
}

TEST(Towers, NothingRepeats) {
  EXPECT_THAT(findTowers({}), IsEmpty());
  EXPECT_EQ(towersOf("eLgh"), "");
}

TEST(Towers, BlocksHaveWeights) { EXPECT_EQ(towersOf("Lababab"), ""); }

TEST(Towers, LayersAreCutWhereTheResidualIsAlone) {
  // Attention and MLP, each behind a norm, and a norm more at the end.
  EXPECT_EQ(towersOf(".nAo+nMm+nAo+nMm+nAo+nMm+nH"), "nAo+nMm+ nAo+nMm+ nAo+nMm+");
}

TEST(Towers, NormsMayComeBehindTheSum) {
  // The embedding ends as a layer does.
  std::vector<SequenceOp> ops = chain("E+nAo+nMm+nAo+nMm+nH");
  // The residual is the norm's result.
  for (size_t i = 2; i < ops.size(); ++i) {
    if (ops[i].kind != '+') continue;
    ops[i].operands = {static_cast<int>(i) - 1, static_cast<int>(i) - 3};
  }
  ops[1].operands = {0};
  EXPECT_EQ(towersOf("E+nAo+nMm+nAo+nMm+nH", ops), "Ao+nMm+n Ao+nMm+n");
}

TEST(Towers, SeveralTowers) { EXPECT_EQ(towersOf("eVvVvVvPpLlmLlmh"), "Vv Vv Vv|Llm Llm"); }

TEST(Towers, ABlockIsTheShortestThatRepeats) { EXPECT_EQ(towersOf("LgLgLgLg"), "Lg Lg Lg Lg"); }

TEST(Towers, LayersOfTwoKindsInTurnAreOneBlock) {
  EXPECT_EQ(towersOf(".Aa+Bb+Aa+Bb+Aa+Bb+h"), "Aa+Bb+ Aa+Bb+ Aa+Bb+");
}

TEST(Towers, SomethingWithoutWeightsMayComeBetweenLayers) {
  EXPECT_EQ(towersOf("eLgsLgsLgLgLgh"), "Lg Lg Lg Lg Lg");
  // But with a weight it is something else, and takes the layers in front of it out.
  EXPECT_EQ(towersOf("eLgSLgLgLgh"), "Lg Lg Lg");
}

TEST(Towers, TheLastLayerMayLackWhatIsBetweenTheOthers) {
  EXPECT_EQ(towersOf("eLgsLgsLgh"), "Lg Lg Lg");
  // But not the half of a layer.
  EXPECT_EQ(towersOf("eAaMmAaMmAah"), "AaMm AaMm");
}

TEST(Towers, BlocksReadEachOther) {
  // Two linear layers and their activations, of the same value: query and key of a layer.
  std::vector<SequenceOp> ops = chain("eLgLg");
  ops[3].operands = {0};
  EXPECT_THAT(findTowers(ops), IsEmpty());
}

TEST(Towers, TheMostExpensiveComeFirst) {
  // An A more could be of either tower.
  std::vector<SequenceOp> ops = chain("AxAxBAxBAxB");
  EXPECT_EQ(towersOf("AxAxBAxBAxB", ops), "AxB AxB AxB");
  ops[0].cost = ops[2].cost = 100;
  EXPECT_EQ(towersOf("AxAxBAxBAxB", ops), "Ax Ax|BAx BAx");
}

TEST(Towers, PlacesAreThoseOfTheSequence) {
  EXPECT_THAT(findTowers(chain("eLgLgh")), ElementsAre(ElementsAre(Block{1, 3}, Block{3, 5})));
}

}  // namespace
}  // namespace oriel
