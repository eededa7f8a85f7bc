// Every op of the oriel dialect, by family.
include "ir/oriel/activation.td"
include "ir/oriel/attention.td"
include "ir/oriel/elementwise.td"
include "ir/oriel/linear.td"
include "ir/oriel/multimodal.td"
include "ir/oriel/normalization.td"
include "ir/oriel/shape.td"
include "ir/oriel/training.td"
