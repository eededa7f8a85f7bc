// Oriel's version; the build sets it.
#ifndef ORIEL_DRIVER_VERSION_H_
#define ORIEL_DRIVER_VERSION_H_

namespace oriel::driver {

inline constexpr char kVersion[] = ORIEL_VERSION;

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_VERSION_H_
