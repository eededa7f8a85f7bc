// Recurrent layers: a turn for each position, unrolled, since all lengths are known. What a turn
// makes of its input alone is one product for all positions.
#include "frontend/node_importer.h"
#include "frontend/op_registry.h"
#include "frontend/ops/ops.h"

namespace oriel {
namespace {

using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::Value;

// Turns: each is up to some 20 ops, for each direction.
constexpr int64_t kMaxLength = 1024;

using Activation = Value (*)(NodeImporter&, Value);

template <typename OpTy>
Value activate(NodeImporter& n, Value x) {
  return n.create<OpTy>(x);
}

// What one direction of a layer carries from turn to turn: [batch, hidden] each.
struct State {
  Value hidden, cell;
};

// The parameters of one direction, and what its activations are.
struct Direction {
  bool reverse = false;
  Value inputWeight, hiddenWeight;  // [gates * hidden, input], [gates * hidden, hidden]
  Value inputBias, hiddenBias;      // [gates * hidden], or null
  Value peephole;                   // [gates of it * hidden], or null
  llvm::SmallVector<Activation, 3> activations;
};

Value linear(NodeImporter& n, Value x, Value weight, Value bias) {
  return n.create<ir::LinearOp>(x, weight, OptionalValue{bias}, /*transposeWeight=*/true);
}

Value sum(NodeImporter& n, Value a, Value b) { return n.create<ir::AddOp>(a, b); }
Value product(NodeImporter& n, Value a, Value b) { return n.create<ir::MulOp>(a, b); }

// Part `index` of the last dimension, of `size` elements.
Value partOf(NodeImporter& n, Value x, int64_t index, int64_t size) {
  return x ? n.sliceDim(x, rankOf(x) - 1, index * size, (index + 1) * size) : Value();
}

class Recurrent {
 public:
  Recurrent(NodeImporter& n, int64_t gates) : n_(n), gates_(gates) {}
  LogicalResult import();

 protected:
  ~Recurrent() = default;

  // One turn; `x` is what the input gives to the gates, [batch, gates * hidden].
  virtual State turn(const Direction& direction, Value x, const State& before) = 0;
  // One for each of a direction's activations, in the order of ONNX's attribute.
  virtual llvm::SmallVector<llvm::StringRef, 3> defaultActivations() const = 0;
  // The operand that holds initial values of the cell's state; 0 where there is none.
  virtual unsigned cellOperand() const { return 0; }
  virtual unsigned peepholeOperand() const { return 0; }
  // Whether biases of the hidden state are added with the input's.
  virtual bool addsBiasesAtOnce() const { return true; }

  Value gate(Value x, int64_t index) { return partOf(n_, x, index, hidden_); }

  NodeImporter& n_;
  const int64_t gates_;
  int64_t hidden_ = 0;

 private:
  LogicalResult readShapes();
  LogicalResult readActivations();
  LogicalResult checkLengths();
  Direction directionOf(int64_t index);
  State initialState(int64_t index);
  bool isBatchFirst() { return n_.attrInt("layout", 0) != 0; }

  int64_t directions_ = 1, length_ = 0, batch_ = 0, input_ = 0;
  bool reverse_ = false;
  llvm::SmallVector<Activation> activations_;
};

LogicalResult Recurrent::readShapes() {
  Value x = n_.operand(0), weight = n_.operand(1), recurrence = n_.operand(2);
  if (!x || !weight || !recurrence) {
    return failure();
  }
  std::string direction = n_.attrString("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    return n_.error() << "does not know the direction \"" << direction << "\"";
  }
  directions_ = direction == "bidirectional" ? 2 : 1;
  reverse_ = direction == "reverse";
  if (rankOf(x) != 3 || rankOf(weight) != 3 || rankOf(recurrence) != 3) {
    return n_.error() << "has inputs " << x.getType() << ", " << weight.getType() << " and "
                      << recurrence.getType() << ", not of three dimensions";
  }
  length_ = shapeOf(x)[isBatchFirst() ? 1 : 0];
  batch_ = shapeOf(x)[isBatchFirst() ? 0 : 1];
  input_ = shapeOf(x)[2];
  hidden_ = shapeOf(recurrence)[2];
  auto has = [&](unsigned operand, llvm::ArrayRef<int64_t> shape) {
    Value value = n_.optionalOperand(operand);
    return !value || shapeOf(value) == shape;
  };
  int64_t rows = gates_ * hidden_;
  Ints state =
      isBatchFirst() ? Ints{batch_, directions_, hidden_} : Ints{directions_, batch_, hidden_};
  if (int64_t size = n_.attrInt("hidden_size", hidden_); size != hidden_) {
    return n_.error() << "has the hidden_size " << size << ", and a recurrence weight for "
                      << hidden_;
  }
  if (hidden_ < 1 || input_ < 1 || !has(1, {directions_, rows, input_}) ||
      !has(2, {directions_, rows, hidden_}) || !has(3, {directions_, 2 * rows}) || !has(5, state) ||
      (cellOperand() != 0 && !has(cellOperand(), state)) ||
      (peepholeOperand() != 0 && !has(peepholeOperand(), {directions_, 3 * hidden_}))) {
    return n_.error() << "has parameters or states that don't fit " << directions_
                      << " directions, " << gates_ << " gates, " << input_ << " inputs and "
                      << hidden_ << " hidden elements";
  }
  if (length_ < 1 || length_ > kMaxLength) {
    return n_.error() << "takes " << length_ << " turns, one for each position; up to "
                      << kMaxLength << " are unrolled";
  }
  return checkLengths();
}

// Sequences that end before the others are not supported: lengths may only say that there are none.
LogicalResult Recurrent::checkLengths() {
  if (!n_.hasOperand(4)) {
    return mlir::success();
  }
  auto lengths = n_.constantInts(4);
  if (failed(lengths)) {
    return failure();
  }
  if (shapeOf(n_.operand(4)) != llvm::ArrayRef(batch_) ||
      llvm::any_of(*lengths, [&](int64_t length) { return length != length_; })) {
    return n_.error() << "has sequence_lens other than " << length_ << " positions for each of "
                      << batch_ << " samples; mask its result instead";
  }
  return mlir::success();
}

LogicalResult Recurrent::readActivations() {
  if (n_.attrInt("input_forget", 0) != 0) {
    return n_.error() << "couples input and forget gates (input_forget), which Oriel does not "
                         "import";
  }
  if (n_.hasAttr("clip") || n_.hasAttr("activation_alpha") || n_.hasAttr("activation_beta")) {
    return n_.error() << "has clip, activation_alpha or activation_beta, which Oriel does not "
                         "import";
  }
  auto given = n_.attrStrings("activations");
  llvm::SmallVector<llvm::StringRef, 3> defaults = defaultActivations();
  size_t count = defaults.size() * static_cast<size_t>(directions_);
  // ONNX's default for RNN names both directions, whatever the node has.
  bool isGiven = given && !given->empty();
  if (isGiven && given->size() != count && given->size() != 2 * defaults.size()) {
    return n_.error() << "has " << given->size() << " activations, expected " << count;
  }
  for (size_t i = 0; i < count; ++i) {
    llvm::StringRef name = isGiven ? llvm::StringRef((*given)[i]) : defaults[i % defaults.size()];
    Activation activation = llvm::StringSwitch<Activation>(name.lower())
                                .Case("sigmoid", activate<ir::SigmoidOp>)
                                .Case("tanh", activate<ir::TanhOp>)
                                .Case("relu", activate<ir::ReluOp>)
                                .Default(nullptr);
    if (activation == nullptr) {
      return n_.error() << "has the activation \"" << name << "\", not Sigmoid, Tanh or Relu";
    }
    activations_.push_back(activation);
  }
  return mlir::success();
}

Direction Recurrent::directionOf(int64_t index) {
  auto ofThis = [&](unsigned operand) {
    Value all = n_.optionalOperand(operand);
    return all ? n_.reshape(n_.sliceDim(all, 0, index, index + 1), shapeOf(all).drop_front())
               : Value();
  };
  Direction direction;
  direction.reverse = reverse_ || index == 1;
  direction.inputWeight = ofThis(1);
  direction.hiddenWeight = ofThis(2);
  if (Value biases = ofThis(3)) {
    direction.inputBias = partOf(n_, biases, 0, gates_ * hidden_);
    direction.hiddenBias = partOf(n_, biases, 1, gates_ * hidden_);
  }
  if (direction.hiddenBias && addsBiasesAtOnce()) {
    direction.inputBias = sum(n_, direction.inputBias, direction.hiddenBias);
    direction.hiddenBias = {};
  }
  direction.peephole = peepholeOperand() == 0 ? Value() : ofThis(peepholeOperand());
  size_t each = activations_.size() / static_cast<size_t>(directions_);
  llvm::append_range(direction.activations,
                     llvm::ArrayRef(activations_).slice(static_cast<size_t>(index) * each, each));
  return direction;
}

State Recurrent::initialState(int64_t index) {
  // Null, with an error, for a state that is too large.
  Value zero = n_.splat(n_.tensorType({batch_, hidden_}, elementOf(n_.operand(0))), 0);
  auto given = [&](unsigned operand) {
    Value all = operand == 0 ? Value() : n_.optionalOperand(operand);
    int64_t dim = isBatchFirst() ? 1 : 0;
    return all ? n_.reshape(n_.sliceDim(all, dim, index, index + 1), {batch_, hidden_}) : zero;
  };
  return {given(5), given(cellOperand())};
}

LogicalResult Recurrent::import() {
  if (failed(readShapes()) || failed(readActivations())) {
    return failure();
  }
  llvm::SmallVector<Value> sequences, hidden, cells;
  int64_t dim = isBatchFirst() ? 1 : 0;
  for (int64_t index = 0; index < directions_; ++index) {
    Direction direction = directionOf(index);
    State state = initialState(index);
    Value inputs = linear(n_, n_.operand(0), direction.inputWeight, direction.inputBias);
    llvm::SmallVector<Value> turns(static_cast<size_t>(length_));
    for (int64_t i = 0; i < length_; ++i) {
      int64_t at = direction.reverse ? length_ - 1 - i : i;
      if (!inputs) {
        return failure();
      }
      Value x = n_.reshape(n_.sliceDim(inputs, dim, at, at + 1), {batch_, gates_ * hidden_});
      state = turn(direction, x, state);
      turns[static_cast<size_t>(at)] = n_.reshape(
          state.hidden, isBatchFirst() ? Ints{batch_, 1, 1, hidden_} : Ints{1, 1, batch_, hidden_});
    }
    sequences.push_back(n_.concat(turns, dim));
    Ints one = isBatchFirst() ? Ints{batch_, 1, hidden_} : Ints{1, batch_, hidden_};
    hidden.push_back(n_.reshape(state.hidden, one));
    if (cellOperand() != 0) {
      cells.push_back(n_.reshape(state.cell, one));
    }
  }
  // [length, directions, batch, hidden], or [batch, length, directions, hidden].
  llvm::SmallVector<Value> results{n_.concat(sequences, isBatchFirst() ? 2 : 1),
                                   n_.concat(hidden, dim)};
  if (cellOperand() != 0) {
    results.push_back(n_.concat(cells, dim));
  }
  return n_.replace(results);
}

class Rnn final : public Recurrent {
 public:
  explicit Rnn(NodeImporter& n) : Recurrent(n, /*gates=*/1) {}

 private:
  llvm::SmallVector<llvm::StringRef, 3> defaultActivations() const override { return {"Tanh"}; }

  State turn(const Direction& direction, Value x, const State& before) override {
    Value h = linear(n_, before.hidden, direction.hiddenWeight, direction.hiddenBias);
    return {direction.activations[0](n_, sum(n_, x, h)), before.cell};
  }
};

// Gates: input, output, forget, cell.
class Lstm final : public Recurrent {
 public:
  explicit Lstm(NodeImporter& n) : Recurrent(n, /*gates=*/4) {}

 private:
  llvm::SmallVector<llvm::StringRef, 3> defaultActivations() const override {
    return {"Sigmoid", "Tanh", "Tanh"};
  }
  unsigned cellOperand() const override { return 6; }
  unsigned peepholeOperand() const override { return 7; }

  // A gate that also sees the cell, by the peephole of its number.
  Value peeping(const Direction& direction, Value gate, int64_t index, Value cell) {
    Value weight = partOf(n_, direction.peephole, index, hidden_);
    return weight ? sum(n_, gate, product(n_, cell, weight)) : gate;
  }

  State turn(const Direction& direction, Value x, const State& before) override {
    Activation f = direction.activations[0], g = direction.activations[1],
               h = direction.activations[2];
    x = sum(n_, x, linear(n_, before.hidden, direction.hiddenWeight, direction.hiddenBias));
    Value input = f(n_, peeping(direction, gate(x, 0), 0, before.cell));
    Value forget = f(n_, peeping(direction, gate(x, 2), 2, before.cell));
    Value cell = sum(n_, product(n_, forget, before.cell), product(n_, input, g(n_, gate(x, 3))));
    Value output = f(n_, peeping(direction, gate(x, 1), 1, cell));
    return {product(n_, output, h(n_, cell)), cell};
  }
};

// Gates: update, reset, hidden.
class Gru final : public Recurrent {
 public:
  explicit Gru(NodeImporter& n)
      : Recurrent(n, /*gates=*/3), resetsProduct_(n.attrInt("linear_before_reset", 0) != 0) {}

 private:
  llvm::SmallVector<llvm::StringRef, 3> defaultActivations() const override {
    return {"Sigmoid", "Tanh"};
  }
  bool addsBiasesAtOnce() const override { return false; }

  // Rows of the weight of gates `first` to `last`, times x, and their bias.
  Value ofGates(const Direction& direction, Value x, int64_t first, int64_t last) {
    auto rows = [&](Value value) {
      return value ? n_.sliceDim(value, 0, first * hidden_, last * hidden_) : Value();
    };
    return linear(n_, x, rows(direction.hiddenWeight), rows(direction.hiddenBias));
  }

  State turn(const Direction& direction, Value x, const State& before) override {
    Activation f = direction.activations[0], g = direction.activations[1];
    // PyTorch's form has one product for all gates.
    Value h = ofGates(direction, before.hidden, 0, resetsProduct_ ? 3 : 2);
    Value update = f(n_, sum(n_, gate(x, 0), gate(h, 0)));
    Value reset = f(n_, sum(n_, gate(x, 1), gate(h, 1)));
    Value recurrent = resetsProduct_ ? product(n_, reset, gate(h, 2))
                                     : ofGates(direction, product(n_, reset, before.hidden), 2, 3);
    Value proposed = g(n_, sum(n_, gate(x, 2), recurrent));
    // (1 - z) p + z h
    Value change = product(n_, update, n_.create<ir::SubOp>(before.hidden, proposed));
    return {sum(n_, proposed, change), before.cell};
  }

  const bool resetsProduct_;
};

template <typename LayerT>
LogicalResult importRecurrent(NodeImporter& n) {
  return LayerT(n).import();
}

}  // namespace

void registerRecurrentOps(OpRegistry& registry) {
  registry.add("RNN", 7, importRecurrent<Rnn>);
  registry.add("LSTM", 7, importRecurrent<Lstm>);
  registry.add("GRU", 7, importRecurrent<Gru>);
  // Initial states: zeros that PyTorch's exporter made a tensor of.
  registry.addConstantOperands("RNN", {5});
  registry.addConstantOperands("LSTM", {5, 6});
  registry.addConstantOperands("GRU", {5});
}

}  // namespace oriel
