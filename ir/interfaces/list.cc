#include "ir/interfaces/list.h"

#include "ir/interfaces/list.cc.inc"
