// What launches of delta_scan.cu are given by value; for host and device code.
#ifndef ORIEL_KERNELS_RECURRENCE_DELTA_SCAN_ARGS_H_
#define ORIEL_KERNELS_RECURRENCE_DELTA_SCAN_ARGS_H_

#include <cstdint>

namespace oriel::kernels {

struct DeltaScan {
  int64_t batch;     // scans
  int64_t chunks;    // of a scan
  int64_t c, k, v;   // positions of a chunk, rows and columns of a state
  bool decays_rows;  // each by its own factor
  bool adds, reverse;
};

inline constexpr int kDeltaScanThreads = 256;
// Columns of a state that a block scans: many if they fit into its shared memory, else few.
inline constexpr int kDeltaScanColumns = 32, kDeltaScanFewColumns = 8;
// Bytes of shared memory of a block, for rows of a state and of what is written.
inline constexpr int kDeltaScanBytes = 40 * 1024;

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_RECURRENCE_DELTA_SCAN_ARGS_H_
