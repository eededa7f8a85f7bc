// The learning-rate schedule of a plan.
#ifndef ORIEL_RUNTIME_TRAIN_LEARNING_RATE_H_
#define ORIEL_RUNTIME_TRAIN_LEARNING_RATE_H_

#include <cstdint>

#include "runtime/plan/plan.pb.h"

namespace oriel::runtime {

// The rate of a step (from 1). With w warm-up steps, h steps at the peak p (Hu et al. 2024,
// MiniCPM, eq. 1: warm-up, stable, decay), T total steps and final ratio r:
//
//   s <= w    p * s / w
//   s <= w+h  p
//   constant  p
//   linear    p * (1 - (1 - r) * t)                        t = (s - w - h) / (T - w - h), at most 1
//   cosine    p * (r + (1 - r) * (1 + cos(pi * t)) / 2)    (Loshchilov, Hutter: SGDR, eq. 5)
double LearningRateAt(const plan::LearningRate& schedule, int64_t step);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_TRAIN_LEARNING_RATE_H_
