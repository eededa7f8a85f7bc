// Recognises what exporters write for elements that are kept at random, other than by Dropout.
//
// Stochastic depth (Huang et al. 2016) and masks of one's own become, in both of PyTorch's
// exporters,
//
//   kept = Cast(Less(RandomUniformLike(x), p))          # bernoulli_(p), rand(..) < p
//   kept = Floor(Add(RandomUniformLike(x), p))          # transformers' drop_path
//   y    = Where(Less(RandomUniformLike(x), p), 0, x)   # and the other way round
//
// with any of the four comparisons, by a number that is known at compile time. What is random is
// kept as an element of Dropout is, so that it is the same for each strategy. In an evaluation it
// is its mean, p: what is divided by p is then left as it is.
#ifndef ORIEL_FRONTEND_RANDOM_CHOICES_H_
#define ORIEL_FRONTEND_RANDOM_CHOICES_H_

#include "frontend/graph.h"

namespace oriel {

// Op, in kOrielDomain, of the node that stands for a choice: RandomChoice(threshold, like), or with
// an attribute `shape` in place of `like`. A uniform number from `low` to `high` is `above` the
// threshold (1), or is not (0), in the type `to` or the threshold's, or with a third operand in
// its type; `site` tells the number from others. With `of_sum` it is the whole part of their sum,
// and the threshold from 0 to 1. RandomChoice(threshold, like, x, y) is x where it is so, y
// elsewhere.
inline constexpr char kRandomChoice[] = "RandomChoice";

// Puts such a node in the place of each choice.
void replaceRandomChoices(Graph& graph);

}  // namespace oriel

#endif  // ORIEL_FRONTEND_RANDOM_CHOICES_H_
