#include "frontend/random_choices.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "llvm/ADT/STLExtras.h"
#include "onnx/onnx_pb.h"

namespace oriel {
namespace {

using llvm::StringRef;
using Node = Graph::Node;

bool isAny(const Node* node, llvm::ArrayRef<StringRef> ops) {
  return llvm::any_of(ops, [&](StringRef op) { return Graph::is(node, op); });
}

// A uniform number that is compared with another.
struct Choice {
  const Node* random;
  std::string threshold;
  bool above;
};

class ChoiceMatcher {
 public:
  explicit ChoiceMatcher(const Graph& graph) : graph_(graph) {}

  // What a boolean says.
  std::optional<Choice> comparison(StringRef value) const {
    const Node* node = graph_.producer(value);
    bool negated = false;
    for (; Graph::is(node, "Not"); node = graph_.producer(Graph::operand(*node, 0))) {
      negated = !negated;
    }
    const bool less = isAny(node, {"Less", "LessOrEqual"});
    if (!less && !isAny(node, {"Greater", "GreaterOrEqual"})) return std::nullopt;
    for (int side : {0, 1}) {
      const Node* random = uniform(Graph::operand(*node, side));
      if (!random) continue;
      const bool above = (less == (side == 1)) != negated;
      return Choice{random, withoutCast(Graph::operand(*node, 1 - side)), above};
    }
    return std::nullopt;
  }

  // What is 1 where the number and the threshold, which is from 0 to 1, make up one or more:
  // Floor(Add(..)).
  std::optional<Choice> wholePart(const Node& floor) const {
    const Node* add = graph_.producer(Graph::operand(floor, 0));
    if (!Graph::is(add, "Add")) return std::nullopt;
    for (int side : {0, 1}) {
      const Node* random = uniform(Graph::operand(*add, side));
      if (random && isFromZeroToOne(*random)) {
        return Choice{random, withoutCast(Graph::operand(*add, 1 - side)), /*above=*/false};
      }
    }
    return std::nullopt;
  }

 private:
  const Node* uniform(StringRef value) const {
    const Node* node = graph_.producer(value);
    while (Graph::is(node, "Identity") || isCastToFloat(node)) {
      node = graph_.producer(Graph::operand(*node, 0));
    }
    return isAny(node, {"RandomUniform", "RandomUniformLike"}) ? node : nullptr;
  }

  static bool isCastToFloat(const Node* node) {
    const auto* to = Graph::is(node, "Cast") ? Graph::attribute(*node, "to") : nullptr;
    return to && (to->i() == onnx::TensorProto::FLOAT || to->i() == onnx::TensorProto::DOUBLE ||
                  to->i() == onnx::TensorProto::FLOAT16 || to->i() == onnx::TensorProto::BFLOAT16);
  }

  // A cast to the type of the random number would keep that.
  std::string withoutCast(StringRef threshold) const {
    const Node* node = graph_.producer(threshold);
    return Graph::is(node, "CastLike") ? Graph::operand(*node, 0).str() : threshold.str();
  }

  static bool isFromZeroToOne(const Node& random) {
    const auto* low = Graph::attribute(random, "low");
    const auto* high = Graph::attribute(random, "high");
    return (!low || low->f() == 0) && (!high || high->f() == 1);
  }

  const Graph& graph_;
};

class ChoiceReplacer {
 public:
  explicit ChoiceReplacer(Graph& graph) : graph_(graph), matcher_(graph) {}

  void run() {
    std::vector<std::pair<const Node*, Choice>> found;
    for (const Node* node : graph_.nodes().vec()) {
      if (std::optional<Choice> choice = match(*node)) found.emplace_back(node, *choice);
    }
    // What is chosen by one number in several ways (below 0.1, from 0.1 to 0.2; x, and elsewhere y)
    // belongs together: such choices stay as they are, to be refused.
    std::map<const Node*, std::set<std::tuple<std::string, bool, const Node*>>> ways;
    for (const auto& [node, choice] : found) {
      const Node* own = Graph::is(node, "Where") ? node : nullptr;
      ways[choice.random].emplace(choice.threshold, choice.above, own);
    }
    for (const auto& [node, choice] : found) {
      if (ways[choice.random].size() == 1) graph_.replace(node, choiceInstead(*node, choice));
    }
  }

 private:
  std::optional<Choice> match(const Node& node) const {
    if (Graph::is(&node, "Floor")) return matcher_.wholePart(node);
    if (isAny(&node, {"Cast", "CastLike", "Where"})) {
      return matcher_.comparison(Graph::operand(node, 0));
    }
    return std::nullopt;
  }

  Node choiceInstead(const Node& node, const Choice& choice) const {
    Node instead = node;  // keeps name and metadata
    instead.set_domain(kOrielDomain);
    instead.set_op_type(kRandomChoice);
    if (!Graph::is(&node, "Cast")) instead.clear_attribute();  // `to`
    for (const auto& attribute : choice.random->attribute()) {
      if (attribute.name() != "dtype") *instead.add_attribute() = attribute;
    }
    auto set = [&](const char* name, bool value) {
      auto* attribute = instead.add_attribute();
      attribute->set_name(name);
      attribute->set_type(onnx::AttributeProto::INT);
      attribute->set_i(value);
    };
    set("above", choice.above);
    set("of_sum", Graph::is(&node, "Floor"));
    auto* site = instead.add_attribute();
    site->set_name("site");
    site->set_type(onnx::AttributeProto::STRING);
    site->set_s(choice.random->output(0));

    instead.clear_input();
    instead.add_input(choice.threshold);
    instead.add_input(Graph::operand(*choice.random, 0).str());
    if (isAny(&node, {"CastLike", "Where"})) {
      for (int i = 1; i < node.input_size(); ++i) instead.add_input(node.input(i));
    }
    return instead;
  }

  Graph& graph_;
  ChoiceMatcher matcher_;
};

}  // namespace

void replaceRandomChoices(Graph& graph) { ChoiceReplacer(graph).run(); }

}  // namespace oriel
