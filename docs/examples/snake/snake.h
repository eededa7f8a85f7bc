// The acme dialect.
#ifndef ACME_SNAKE_H_
#define ACME_SNAKE_H_

#include "ir/oriel/oriel.h"

// The generated parts need what is included above. clang-format would sort them among it.
// clang-format off
#include "snake_dialect.h.inc"
#define GET_OP_CLASSES
#include "snake_ops.h.inc"
// clang-format on

namespace acme {

// acme-raise-snake: x + sin²(αx)/α, as exporters write it out, becomes acme.snake.
void registerRaiseSnake();

}  // namespace acme

#endif  // ACME_SNAKE_H_
