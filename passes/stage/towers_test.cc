#include "passes/stage/towers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "passes/stage/layer_order.h"

namespace oriel {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A chain of ops, a letter for each kind; capitals have weights, ':' is a conversion. An op reads
// the one before; '+' reads the last '.' or '+' before it too, as a residual sum does.
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
    op.isConversion = kind == ':';
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
  // Nor if a residual leads around the other half: of an encoder's last layer, only one row may be
  // used.
  EXPECT_EQ(towersOf("e.A+Mm+A+Mm+A+Mm+A+Mm+A+xY"), "A+Mm+ A+Mm+ A+Mm+ A+Mm+");
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

// A graph in program order, whose ops are brought into layer order.
class Graph {
 public:
  int add(char kind, std::vector<int> operands) {
    kinds_ += kind;
    operands_.push_back(std::move(operands));
    return static_cast<int>(operands_.size()) - 1;
  }
  int chain(const std::string& kinds, int value) {
    for (char kind : kinds) value = add(kind, {value});
    return value;
  }
  // A norm, a branch and the sum.
  int residual(const std::string& kinds, int value) {
    return add('+', {value, chain("n" + kinds, value)});
  }

  std::string towers() const {
    std::vector<int> place(operands_.size());
    std::vector<SequenceOp> sequence;
    std::string kinds;
    for (int op : layerOrder(operands_)) {
      place[op] = static_cast<int>(sequence.size());
      const char kind = kinds_[op];
      SequenceOp made{kind, 1, 8, kind >= 'A' && kind <= 'Z', {}, kind == ':'};
      for (int operand : operands_[op]) made.operands.push_back(place[operand]);
      sequence.push_back(std::move(made));
      kinds += kind;
    }
    return towersOf(kinds, sequence);
  }

 private:
  std::string kinds_;
  std::vector<std::vector<int>> operands_;
};

TEST(TowersOfGraphs, DecodersReadAnEncoderInEachLayer) {
  for (int layers : {2, 3, 5}) {
    Graph graph;
    int target = graph.add('T', {}), source = graph.add('S', {});
    for (int i = 0; i < layers; ++i) source = graph.residual("Ef", source);
    source = graph.add('n', {source});
    for (int i = 0; i < layers; ++i) {
      target = graph.residual("Af", target);
      // Heads of query, key and value.
      const int query = graph.chain("Qr", graph.add('n', {target}));
      const int key = graph.chain("Kr", source), value = graph.chain("Vr", source);
      target = graph.add('+', {target, graph.chain("O", graph.add('a', {query, key, value}))});
      target = graph.residual("Mm", target);
    }
    graph.chain("nH", target);
    std::string encoder, decoder;
    for (int i = 0; i < layers; ++i) {
      encoder += i > 0 ? " nEf+" : "nEf+";
      decoder += i > 0 ? " nAf+nQrKrVraO+nMm+" : "nAf+nQrKrVraO+nMm+";
    }
    EXPECT_EQ(graph.towers(), encoder + "|" + decoder);
  }
}

TEST(TowersOfGraphs, AttentionAndMlpInParallel) {
  Graph graph;
  int value = graph.add('T', {});
  for (int i = 0; i < 3; ++i) {
    const int norm = graph.add('n', {value});
    const int mlp = graph.chain("MmN", norm);
    const int branches = graph.add('p', {graph.chain("AaO", norm), mlp});
    value = graph.add('+', {branches, value});
  }
  graph.chain("nH", value);
  EXPECT_EQ(graph.towers(), "nAaOMmNp+ nAaOMmNp+ nAaOMmNp+");
}

TEST(TowersOfGraphs, TowersInTurn) {
  Graph graph;
  int image = graph.add('I', {}), text = graph.add('T', {});
  for (int i = 0; i < 3; ++i) {
    image = graph.residual("Vv", image);
    text = graph.residual("Ll", text);
  }
  graph.add('s', {image, text});
  EXPECT_EQ(graph.towers(), "nVv+ nVv+ nVv+|nLl+ nLl+ nLl+");
}

TEST(TowersOfGraphs, FeaturesOfEarlyLayersAreAddedToEarlyLayers) {
  Graph graph;
  int image = graph.add('I', {});
  std::vector<int> features;
  for (int i = 0; i < 4; ++i) {
    image = graph.residual("Vv", image);
    features.push_back(graph.chain("PpP", image));
  }
  int text = graph.add('i', {graph.add('T', {}), features[3]});
  for (int i = 0; i < 5; ++i) {
    text = graph.residual("Ll", text);
    if (i < 3) text = graph.add('w', {text, graph.add('x', {features[i], text})});
  }
  graph.chain("nH", text);
  EXPECT_EQ(graph.towers(), "nVv+ nVv+ nVv+ nVv+|nLl+ nLl+ nLl+ nLl+ nLl+");
}

TEST(TowersOfGraphs, TheFirstLayerHasOtherConversions) {
  // A norm's wide result is widened no more for the first layer's norm, but rounded for its sum.
  Graph graph;
  const int wide = graph.chain("EN", graph.add('I', {}));
  int value = -1;
  for (int i = 0; i < 4; ++i) {
    const int branch = graph.chain(i > 0 ? ":n:AaO" : "n:AaO", i > 0 ? value : wide);
    value = graph.add('+', {i > 0 ? value : graph.add(':', {wide}), branch});
    value = graph.add('+', {value, graph.chain(":n:Mm", value)});
  }
  graph.chain("sP", value);
  EXPECT_EQ(graph.towers(), "n:AaO:+:n:Mm+ :n:AaO+:n:Mm+ :n:AaO+:n:Mm+ :n:AaO+:n:Mm+");
}

TEST(Towers, AConversionIsInTheBlockThatReadsIt) {
  EXPECT_EQ(towersOf("E:L:g:L:g:H"), ":L:g :L:g");
  EXPECT_EQ(towersOf("ELgL:gLg:H"), "Lg L:g Lg");
}

TEST(Towers, PlacesAreThoseOfTheSequence) {
  EXPECT_THAT(findTowers(chain("eLgLgh")), ElementsAre(ElementsAre(Block{1, 3}, Block{3, 5})));
}

}  // namespace
}  // namespace oriel
