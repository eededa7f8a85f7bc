#include "tests/fuzz/proto_mutator.h"

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/stubs/logging.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t maxSize);

namespace oriel::fuzz {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using Field = google::protobuf::FieldDescriptor;

constexpr int64_t kIntegers[] = {0,
                                 1,
                                 -1,
                                 2,
                                 3,
                                 7,
                                 64,
                                 255,
                                 1 << 16,
                                 std::numeric_limits<int32_t>::max(),
                                 std::numeric_limits<int32_t>::min(),
                                 int64_t{1} << 40,
                                 int64_t{1} << 62,
                                 std::numeric_limits<int64_t>::max(),
                                 std::numeric_limits<int64_t>::min()};

constexpr double kReals[] = {0,
                             -0.0,
                             1,
                             -1,
                             0.5,
                             1e30,
                             1e-30,
                             1e300,
                             std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()};

void visit(const Message& message, const std::function<void(const Message&)>& see) {
  see(message);
  const Reflection& reflection = *message.GetReflection();
  std::vector<const Field*> fields;
  reflection.ListFields(message, &fields);
  for (const Field* field : fields) {
    if (field->cpp_type() != Field::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      visit(reflection.GetMessage(message, field), see);
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      visit(reflection.GetRepeatedMessage(message, field, i), see);
    }
  }
}

bool isInteger(const Field& field) {
  switch (field.cpp_type()) {
    case Field::CPPTYPE_INT32:
    case Field::CPPTYPE_INT64:
    case Field::CPPTYPE_UINT32:
    case Field::CPPTYPE_UINT64:
      return true;
    default:
      return false;
  }
}

int64_t integerOf(const Message& message, const Field& field, int index) {
  const Reflection& reflection = *message.GetReflection();
  bool repeated = field.is_repeated();
  switch (field.cpp_type()) {
    case Field::CPPTYPE_INT32:
      return repeated ? reflection.GetRepeatedInt32(message, &field, index)
                      : reflection.GetInt32(message, &field);
    case Field::CPPTYPE_INT64:
      return repeated ? reflection.GetRepeatedInt64(message, &field, index)
                      : reflection.GetInt64(message, &field);
    case Field::CPPTYPE_UINT32:
      return repeated ? reflection.GetRepeatedUInt32(message, &field, index)
                      : reflection.GetUInt32(message, &field);
    default:
      return static_cast<int64_t>(repeated ? reflection.GetRepeatedUInt64(message, &field, index)
                                           : reflection.GetUInt64(message, &field));
  }
}

}  // namespace

const Message* ProtoMutator::pick(const Message& root, const Descriptor* type) {
  const Message* chosen = nullptr;
  uint64_t seen = 0;
  visit(root, [&](const Message& message) {
    if ((type == nullptr || message.GetDescriptor() == type) && oneIn(++seen)) chosen = &message;
  });
  return chosen;
}

int64_t ProtoMutator::pickInteger(const Message& root) {
  switch (below(4)) {
    case 0:
      return kIntegers[below(std::size(kIntegers))];
    case 1:
      return static_cast<int64_t>(below(16)) - 4;
    case 2:
      return static_cast<int64_t>(random_());
    default:
      break;
  }
  // Numbers of the tree again: sizes and indices that fit, or nearly so.
  int64_t chosen = 0;
  uint64_t seen = 0;
  visit(root, [&](const Message& message) {
    const Reflection& reflection = *message.GetReflection();
    std::vector<const Field*> fields;
    reflection.ListFields(message, &fields);
    for (const Field* field : fields) {
      if (!isInteger(*field)) continue;
      int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
      if (count > 0 && oneIn(++seen)) {
        chosen = integerOf(message, *field, static_cast<int>(below(count)));
      }
    }
  });
  uint64_t nudge = below(4);
  return static_cast<int64_t>(static_cast<uint64_t>(chosen) + (nudge == 0   ? 1u
                                                               : nudge == 1 ? ~uint64_t{0}
                                                                            : 0u));
}

std::string ProtoMutator::pickString(const Message& root, const std::string& old) {
  if (oneIn(4)) {
    std::string text = old;
    text.resize(old.size() + 16);
    text.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(text.data()), old.size(), text.size()));
    return text;
  }
  std::string chosen;
  uint64_t seen = 0;
  visit(root, [&](const Message& message) {
    const Reflection& reflection = *message.GetReflection();
    std::vector<const Field*> fields;
    reflection.ListFields(message, &fields);
    for (const Field* field : fields) {
      if (field->cpp_type() != Field::CPPTYPE_STRING) continue;
      int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
      for (int i = 0; i < count; ++i) {
        if (!oneIn(++seen)) continue;
        chosen = field->is_repeated() ? reflection.GetRepeatedString(message, field, i)
                                      : reflection.GetString(message, field);
      }
    }
  });
  return chosen;
}

// Sets a singular field, or the element `index` of a repeated one.
void ProtoMutator::setValue(const Message& root, Message& message, const Field& field, int index) {
  const Reflection& reflection = *message.GetReflection();
  auto set = [&](auto single, auto element, auto value) {
    if (field.is_repeated()) {
      (reflection.*element)(&message, &field, index, value);
    } else {
      (reflection.*single)(&message, &field, value);
    }
  };
  switch (field.cpp_type()) {
    case Field::CPPTYPE_INT32:
      return set(&Reflection::SetInt32, &Reflection::SetRepeatedInt32,
                 static_cast<int32_t>(pickInteger(root)));
    case Field::CPPTYPE_INT64:
      return set(&Reflection::SetInt64, &Reflection::SetRepeatedInt64, pickInteger(root));
    case Field::CPPTYPE_UINT32:
      return set(&Reflection::SetUInt32, &Reflection::SetRepeatedUInt32,
                 static_cast<uint32_t>(pickInteger(root)));
    case Field::CPPTYPE_UINT64:
      return set(&Reflection::SetUInt64, &Reflection::SetRepeatedUInt64,
                 static_cast<uint64_t>(pickInteger(root)));
    case Field::CPPTYPE_DOUBLE:
      return set(&Reflection::SetDouble, &Reflection::SetRepeatedDouble,
                 kReals[below(std::size(kReals))]);
    case Field::CPPTYPE_FLOAT:
      return set(&Reflection::SetFloat, &Reflection::SetRepeatedFloat,
                 static_cast<float>(kReals[below(std::size(kReals))]));
    case Field::CPPTYPE_BOOL:
      return set(&Reflection::SetBool, &Reflection::SetRepeatedBool, oneIn(2));
    case Field::CPPTYPE_ENUM: {
      int known = field.enum_type()->value(below(field.enum_type()->value_count()))->number();
      return set(&Reflection::SetEnumValue, &Reflection::SetRepeatedEnumValue,
                 oneIn(8) ? static_cast<int>(pickInteger(root)) : known);
    }
    case Field::CPPTYPE_STRING: {
      std::string old = field.is_repeated() ? reflection.GetRepeatedString(message, &field, index)
                                            : reflection.GetString(message, &field);
      return set(&Reflection::SetString, &Reflection::SetRepeatedString, pickString(root, old));
    }
    case Field::CPPTYPE_MESSAGE: {
      const Message* donor = pick(root, field.message_type());
      if (donor == nullptr) return;
      std::unique_ptr<Message> copy(donor->New());  // the place may lie inside the donor
      copy->CopyFrom(*donor);
      (field.is_repeated() ? reflection.MutableRepeatedMessage(&message, &field, index)
                           : reflection.MutableMessage(&message, &field))
          ->CopyFrom(*copy);
      return;
    }
  }
}

void ProtoMutator::addElement(const Message& root, Message& message, const Field& field) {
  const Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case Field::CPPTYPE_INT32:
      reflection.AddInt32(&message, &field, 0);
      break;
    case Field::CPPTYPE_INT64:
      reflection.AddInt64(&message, &field, 0);
      break;
    case Field::CPPTYPE_UINT32:
      reflection.AddUInt32(&message, &field, 0);
      break;
    case Field::CPPTYPE_UINT64:
      reflection.AddUInt64(&message, &field, 0);
      break;
    case Field::CPPTYPE_DOUBLE:
      reflection.AddDouble(&message, &field, 0);
      break;
    case Field::CPPTYPE_FLOAT:
      reflection.AddFloat(&message, &field, 0);
      break;
    case Field::CPPTYPE_BOOL:
      reflection.AddBool(&message, &field, false);
      break;
    case Field::CPPTYPE_ENUM:
      reflection.AddEnumValue(&message, &field, 0);
      break;
    case Field::CPPTYPE_STRING:
      reflection.AddString(&message, &field, "");
      break;
    case Field::CPPTYPE_MESSAGE: {
      // The donor may lie in the field that grows, so it is copied first.
      const Message* donor = pick(root, field.message_type());
      std::unique_ptr<Message> copy(donor != nullptr ? donor->New() : nullptr);
      if (copy) copy->CopyFrom(*donor);
      Message* added = reflection.AddMessage(&message, &field);
      if (copy) added->CopyFrom(*copy);
      return;
    }
  }
  setValue(root, message, field, reflection.FieldSize(message, &field) - 1);
}

void ProtoMutator::changeRepeated(const Message& root, Message& message, const Field& field) {
  const Reflection& reflection = *message.GetReflection();
  int size = reflection.FieldSize(message, &field);
  uint64_t action = size == 0 ? 0 : below(5);
  switch (action) {
    case 0:
      return addElement(root, message, field);
    case 1:
      reflection.SwapElements(&message, &field, static_cast<int>(below(size)), size - 1);
      return reflection.RemoveLast(&message, &field);
    case 2:
      return reflection.SwapElements(&message, &field, static_cast<int>(below(size)),
                                     static_cast<int>(below(size)));
    default:
      return setValue(root, message, field, static_cast<int>(below(size)));
  }
}

void ProtoMutator::mutateField(const Message& root, Message& message, const Field& field) {
  const Reflection& reflection = *message.GetReflection();
  if (field.is_repeated()) return changeRepeated(root, message, field);
  if (reflection.HasField(message, &field) && oneIn(4)) {
    return reflection.ClearField(&message, &field);
  }
  if (field.cpp_type() == Field::CPPTYPE_MESSAGE && !reflection.HasField(message, &field) &&
      pick(root, field.message_type()) == nullptr) {
    reflection.MutableMessage(&message, &field);
    return;
  }
  setValue(root, message, field, 0);
}

void ProtoMutator::mutate(Message& message) {
  // The tree is ours to change; visit() hands it out as const.
  auto* place = const_cast<Message*>(pick(message, nullptr));
  const Descriptor& type = *place->GetDescriptor();
  if (type.field_count() == 0) return;
  std::vector<const Field*> present;
  place->GetReflection()->ListFields(*place, &present);
  bool keepToPresent = !present.empty() && !oneIn(4);
  const Field* field = keepToPresent ? present[below(present.size())]
                                     : type.field(static_cast<int>(below(type.field_count())));
  mutateField(message, *place, *field);
}

void ProtoMutator::crossOver(const Message& donor, Message& message) {
  const Message* part = pick(donor, nullptr);
  auto* place = const_cast<Message*>(pick(message, part->GetDescriptor()));
  if (place == nullptr) return;
  if (oneIn(2)) {
    place->CopyFrom(*part);
  } else {
    place->MergeFrom(*part);
  }
}

size_t mutateProto(Message& scratch, uint8_t* data, size_t size, size_t maxSize, unsigned seed) {
  google::protobuf::LogSilencer silencer;
  ProtoMutator mutator(seed);
  if (seed % 32 == 0 || !scratch.ParsePartialFromArray(data, static_cast<int>(size))) {
    return LLVMFuzzerMutate(data, size, maxSize);
  }
  for (unsigned rounds = 1 + seed / 32 % 4; rounds > 0; --rounds) {
    mutator.mutate(scratch);
  }
  size_t newSize = scratch.ByteSizeLong();
  if (newSize > maxSize || !scratch.SerializePartialToArray(data, static_cast<int>(newSize))) {
    return LLVMFuzzerMutate(data, size, maxSize);
  }
  return newSize;
}

size_t crossOverProtos(Message& first, Message& second, const uint8_t* data1, size_t size1,
                       const uint8_t* data2, size_t size2, uint8_t* out, size_t maxSize,
                       unsigned seed) {
  google::protobuf::LogSilencer silencer;
  if (!first.ParsePartialFromArray(data1, static_cast<int>(size1)) ||
      !second.ParsePartialFromArray(data2, static_cast<int>(size2))) {
    return 0;
  }
  ProtoMutator(seed).crossOver(second, first);
  size_t newSize = first.ByteSizeLong();
  if (newSize > maxSize || !first.SerializePartialToArray(out, static_cast<int>(newSize))) {
    return 0;
  }
  return newSize;
}

}  // namespace oriel::fuzz
