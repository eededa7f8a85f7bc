#include "frontend/initializer_bytes.h"

#include <string>
#include <utility>

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"
#include "onnx/onnx_pb.h"

namespace oriel {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using onnx::TensorProto;

class Walker {
 public:
  explicit Walker(llvm::ArrayRef<char> file)
      : stream_(reinterpret_cast<const uint8_t*>(file.data()), static_cast<int>(file.size())) {}

  bool run() {
    return eachField([&](int field) {
      return field == onnx::ModelProto::kGraphFieldNumber && nested([&] { return walkGraph(); });
    });
  }
  llvm::StringMap<ByteRange> take() { return std::move(ranges_); }

 private:
  // Calls `visit` for each length-delimited field; where it returns false the field is skipped.
  template <typename Visit>
  bool eachField(Visit visit) {
    while (uint32_t tag = stream_.ReadTag()) {
      bool isBytes =
          WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
      if (isBytes && visit(WireFormatLite::GetTagFieldNumber(tag))) {
        continue;
      }
      if (broken_ || !WireFormatLite::SkipField(&stream_, tag)) {
        return false;
      }
    }
    return !broken_;
  }

  template <typename Walk>
  bool nested(Walk walk) {
    uint32_t size;
    if (!stream_.ReadVarint32(&size)) {
      broken_ = true;
      return true;
    }
    auto limit = stream_.PushLimit(static_cast<int>(size));
    broken_ = !walk();
    stream_.PopLimit(limit);
    return !broken_;
  }

  bool walkGraph() {
    return eachField([&](int field) {
      return field == onnx::GraphProto::kInitializerFieldNumber &&
             nested([&] { return walkTensor(); });
    });
  }

  bool walkTensor() {
    std::string name;
    std::optional<ByteRange> range;
    bool whole = eachField([&](int field) {
      uint32_t size;
      if (field == TensorProto::kNameFieldNumber) {
        broken_ = !stream_.ReadVarint32(&size) || !stream_.ReadString(&name, size);
        return true;
      }
      if (field == TensorProto::kRawDataFieldNumber ||
          field == TensorProto::kFloatDataFieldNumber) {
        broken_ = !stream_.ReadVarint32(&size);
        range = ByteRange{static_cast<uint64_t>(stream_.CurrentPosition()), size};
        broken_ = broken_ || !stream_.Skip(static_cast<int>(size));
        return true;
      }
      return false;
    });
    if (range) {
      ranges_[name] = *range;
    }
    return whole;
  }

  CodedInputStream stream_;
  llvm::StringMap<ByteRange> ranges_;
  bool broken_ = false;
};

}  // namespace

std::optional<llvm::StringMap<ByteRange>> findInitializerBytes(llvm::ArrayRef<char> file) {
  Walker walker(file);
  if (!walker.run()) {
    return std::nullopt;
  }
  return walker.take();
}

}  // namespace oriel
