// Mutates protobuf messages field by field, so that a fuzzer gets past the parser: random bytes
// are rarely a message, and never one whose names refer to each other.
#ifndef ORIEL_TESTS_FUZZ_PROTO_MUTATOR_H_
#define ORIEL_TESTS_FUZZ_PROTO_MUTATOR_H_

#include <cstddef>
#include <cstdint>
#include <random>

#include "google/protobuf/message.h"

namespace oriel::fuzz {

class ProtoMutator {
 public:
  explicit ProtoMutator(unsigned seed) : random_(seed) {}

  // One change somewhere in the tree: a field set, cleared, or copied from another place of the
  // tree; an element added, removed, moved or replaced.
  void mutate(google::protobuf::Message& message);
  // Copies a part of `donor` to a place of the same type.
  void crossOver(const google::protobuf::Message& donor, google::protobuf::Message& message);

 private:
  using Message = google::protobuf::Message;
  using Field = google::protobuf::FieldDescriptor;

  uint64_t below(uint64_t bound) { return bound == 0 ? 0 : random_() % bound; }
  bool oneIn(uint64_t n) { return below(n) == 0; }

  // A message of the tree, of this type if one is given; null if there is none.
  const Message* pick(const Message& root, const google::protobuf::Descriptor* type);
  int64_t pickInteger(const Message& root);
  std::string pickString(const Message& root, const std::string& old);

  void mutateField(const Message& root, Message& message, const Field& field);
  void setValue(const Message& root, Message& message, const Field& field, int index);
  void addElement(const Message& root, Message& message, const Field& field);
  void changeRepeated(const Message& root, Message& message, const Field& field);

  std::mt19937_64 random_;
};

// The body of LLVMFuzzerCustomMutator: mutates `data` as a message of the type of `scratch`, and
// as bytes now and then. Returns the new size.
size_t mutateProto(google::protobuf::Message& scratch, uint8_t* data, size_t size, size_t maxSize,
                   unsigned seed);
// The body of LLVMFuzzerCustomCrossOver.
size_t crossOverProtos(google::protobuf::Message& first, google::protobuf::Message& second,
                       const uint8_t* data1, size_t size1, const uint8_t* data2, size_t size2,
                       uint8_t* out, size_t maxSize, unsigned seed);

}  // namespace oriel::fuzz

#endif  // ORIEL_TESTS_FUZZ_PROTO_MUTATOR_H_
