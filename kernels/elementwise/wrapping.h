// What sums and products of T are computed in: integers wrap.
#ifndef ORIEL_KERNELS_ELEMENTWISE_WRAPPING_H_
#define ORIEL_KERNELS_ELEMENTWISE_WRAPPING_H_

#include <type_traits>

namespace oriel::kernels {

template <typename T, bool = std::is_integral_v<T>>
struct Wrapping {
  using Type = T;
};
template <typename T>
struct Wrapping<T, true> {
  using Type = std::make_unsigned_t<T>;
};
template <typename T>
using Wide = typename Wrapping<T>::Type;

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_ELEMENTWISE_WRAPPING_H_
