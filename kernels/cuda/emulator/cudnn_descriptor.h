// Descriptors of cuDNN's backend, as emulated: their attributes, as they were set.
#ifndef ORIEL_KERNELS_CUDA_EMULATOR_CUDNN_DESCRIPTOR_H_
#define ORIEL_KERNELS_CUDA_EMULATOR_CUDNN_DESCRIPTOR_H_

#include <cudnn.h>

#include <cstring>
#include <map>
#include <memory>
#include <vector>

namespace oriel::kernels::cuda::emulator {

struct Descriptor {
  struct Attribute {
    cudnnBackendAttributeType_t type;
    int64_t count;
    std::vector<char> bytes;  // none, where they are descriptors
    // Copies, finalized: what happens to the originals later does not matter.
    std::vector<std::shared_ptr<const Descriptor>> descriptors;
  };

  cudnnBackendDescriptorType_t type;
  bool finalized = false;
  std::map<cudnnBackendAttributeName_t, Attribute> attributes;

  const Attribute* Find(cudnnBackendAttributeName_t name) const {
    const auto found = attributes.find(name);
    return found == attributes.end() ? nullptr : &found->second;
  }
  // The value, or `fallback` if it was not set.
  template <typename T>
  T Value(cudnnBackendAttributeName_t name, T fallback) const {
    const Attribute* attribute = Find(name);
    if (attribute == nullptr || attribute->bytes.size() < sizeof(T)) return fallback;
    T value;
    std::memcpy(&value, attribute->bytes.data(), sizeof(T));
    return value;
  }
  template <typename T>
  std::vector<T> List(cudnnBackendAttributeName_t name) const {
    const Attribute* attribute = Find(name);
    if (attribute == nullptr) return {};
    std::vector<T> list(attribute->bytes.size() / sizeof(T));
    if (!list.empty()) std::memcpy(list.data(), attribute->bytes.data(), list.size() * sizeof(T));
    return list;
  }
  // Null, if it was not set.
  std::shared_ptr<const Descriptor> One(cudnnBackendAttributeName_t name) const {
    const Attribute* attribute = Find(name);
    if (attribute == nullptr || attribute->descriptors.empty()) return nullptr;
    return attribute->descriptors[0];
  }
};

}  // namespace oriel::kernels::cuda::emulator

#endif  // ORIEL_KERNELS_CUDA_EMULATOR_CUDNN_DESCRIPTOR_H_
