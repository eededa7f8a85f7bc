#include "ir/interfaces/fusion.h"

#include "ir/interfaces/fusion.cc.inc"
