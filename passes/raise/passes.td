// Passes that gather decomposed patterns into semantic ops.
#ifndef ORIEL_PASSES_RAISE_PASSES_TD
#define ORIEL_PASSES_RAISE_PASSES_TD

include "mlir/Pass/PassBase.td"

class Oriel_RaisePass<string name> : Pass<name, "::mlir::func::FuncOp"> {
  let dependentDialects = ["::oriel::ir::OrielDialect"];
}

def RaiseChoice : Oriel_RaisePass<"oriel-raise-choice"> {
  let summary = "Choices that a model writes as sums of products";
  let description = [{
    Keras' exports have a choice between two values as one times a condition, plus the other times
    its opposite; exporters may have folded both into tables of ones and zeros. As a choice it is
    what other passes look for in masks.

    ```mlir
    %y = %a * (oriel.cast %c) + %b * (oriel.cast (oriel.not %c))
    // →
    %y = oriel.select %c, %a, %b
    ```
  }];
}

def RaisePositions : Oriel_RaisePass<"oriel-raise-positions"> {
  let summary = "Comparisons of positions that are the same of all elements";
  let description = [{
    Masks are made of positions: whether a key comes after a query, whether a position is one more
    than that before it, or lies inside of a tensor. Positions of many samples are too many to
    compute when the model is compiled, but linear in their own indices, so that what such a
    comparison is of all elements follows from the smallest and the largest difference. Rows that
    are gathered from equal ones are known as well, if positions pick them.

    ```mlir
    %i = oriel.iota {dim = 1} : () -> tensor<8192x4096xi64>
    %next = oriel.add %i, %one : (tensor<8192x4096xi64>, tensor<i64>) -> tensor<8192x4096xi64>
    %less = oriel.less %i, %next
    // →
    %less = oriel.constant {value = dense<true> : tensor<8192x4096xi1>}
    ```
  }];
}

def RaiseSubstitution : Oriel_RaisePass<"oriel-raise-substitution"> {
  let summary = "Inverses that a loop computes row after row";
  let description = [{
    A gated delta rule solves a triangular system in each chunk of positions. Written as a loop over
    rows, as it must be to be exported, each turn reads a row of the matrix `B`, multiplies it with
    the rows before it, and puts the sum into a copy of the matrix: a dozen ops for each of 64 rows,
    and as many copies. `B` must be 0 on and above its diagonal, by a constant mask, and have up to
    256 rows. The elements of all that is computed of it are followed as sums of products, so that
    it does not matter by which slices, concatenations, transposes and sums the loop is written,
    from the first row to the last, as long as batches stay dimensions of their own.

    ```mlir
    %row = oriel.slice %b[2, 0:2]
    %new = %row + Σ_k %row[k] * %b1[k, 0:2]
    %b2 = oriel.concat %b1[0:2, :], (oriel.concat %new, %b1[2, 2:]), %b1[3:, :]
    ..
    // →
    %x = oriel.triangular_solve (oriel.neg %b), %b {unit_diagonal = true}   // (1 - B) X = B
    ```
  }];
}

def RaiseUpdates : Oriel_RaisePass<"oriel-raise-updates"> {
  let summary = "Results that a loop writes piece by piece";
  let description = [{
    `y[:, i] = ..` in an unrolled loop copies all of `y` for each `i`: a concatenation of what is
    before the piece, the piece, and what is behind it. A concatenation of parts of others, along
    the same dimension, is one of what these were made of, so that the last one has all pieces and
    none of those before it is left; where something else reads them, they stay. Parts of one value
    that follow each other are one part, or the value: a split that is joined again is nothing.

    ```mlir
    %y1 = oriel.concat %p0, %zeros
    %y2 = oriel.concat %y1[0:1], %p1, %y1[2:4]
    // →
    %y2 = oriel.concat %p0, %p1, %zeros[1:3]
    ```
  }];
}

def RaiseRecurrence : Oriel_RaisePass<"oriel-raise-recurrence"> {
  let summary = "States of linear attention that a loop takes from chunk to chunk";
  let description = [{
    Linear attention by the delta rule goes through a sequence in chunks of positions, with a state
    that each chunk reads and updates: exported, all of the loop is there once for each chunk. What
    needs the state of the chunk before becomes one op for all chunks; what is read of each state
    and of what was written comes from slices of its results, so that other passes find the rest of
    the loop computed alike for each chunk (oriel-raise-packed). Keys, values and decays must not
    depend on the states.

    ```mlir
    %x0 = %u0 - %w0 %s0                       // [b, c, v]
    %s1 = %d0 * %s0 + oriel.transpose(%k0) %x0
    %x1 = %u1 - %w1 %s1
    %s2 = %d1 * %s1 + oriel.transpose(%k1) %x1
    // →
    %x, %s, %s2 = oriel.delta_scan (concat %u0, %u1), (neg (concat %w0, %w1)), (concat %k0, %k1),
        (concat %d0, %d1), %s0                // %x0 = %x[:, 0], %s1 = %s[:, 1], ..
    ```
  }];
}

def RaiseLinear : Oriel_RaisePass<"oriel-raise-linear"> {
  let summary = "Linear layers with their bias and their weight as stored";
  let description = [{
    Also where the weight is one of several dimensions, which an einsum transposes and merges; and
    convolutions of patches that lie side by side, as patch embeddings are, if what follows wants
    the channels last, or of one patch for each sample.

    ```mlir
    %t = oriel.transpose %w {permutation = array<i64: 1, 0>}
    %y = oriel.linear %x, %t
    %z = oriel.add %y, %b
    // →
    %z = oriel.linear %x, %w, %b {transpose_weight = true}
    ```
  }];
}

def RaiseMean : Oriel_RaisePass<"oriel-raise-mean"> {
  let summary = "Means that a model writes as sums";
  let description = [{
    `jnp.mean` and `jnp.var` are exported as sums by the number of summands, each with a mean of its
    own. As means, equal ones become one by CSE, and norms are recognised.

    ```mlir
    %s = oriel.reduce_sum %x {dims = array<i64: 2>}
    %m = (oriel.reshape %s) / %n
    // →
    %m = oriel.reshape (oriel.reduce_mean %x {dims = array<i64: 2>})
    ```
  }];
}

def RaiseNormalization : Oriel_RaisePass<"oriel-raise-normalization"> {
  let summary = "RMS and layer normalisation over the last dimension";
  let description = [{
    Takes the variants that exporters write: the square as a power or a product, the inverse
    root as `rsqrt`, as a reciprocal or as a division, the weight on either side, the variance as the
    mean of squares less the square of the mean, and the mean subtracted behind the scale. Rows of length 1
    are normalised by the sum of squares: with the weight `1 / √d`, whether an epsilon is added to
    the sum or the length is at least a small number.

    ```mlir
    %s = oriel.pow %x, %two
    %m = oriel.reduce_mean %s {dims = array<i64: 2>, keep_dims = true}
    %r = oriel.rsqrt (%m + %eps)
    %y = (%x * %r) * %w
    // →
    %y, %inv_rms = oriel.rms_norm %x, %w {epsilon = 1.0e-6}
    ```
  }];
}

def RaiseSoftmax : Oriel_RaisePass<"oriel-raise-softmax"> {
  let summary = "Softmax that a model spells out";
  let description = [{
    The exponentials by their sum, and the maximum that some subtract first, as Perceiver's
    resamplers do, which a softmax does by itself. A softmax of which a mask leaves a part,
    by the sum of that part, is one of the scores that the mask shows.

    ```mlir
    %m = oriel.reduce_max %x {dims = array<i64: 2>, keep_dims = true}
    %e = oriel.exp (%x - %m)
    %y = %e / (oriel.reduce_sum %e {dims = array<i64: 2>, keep_dims = true})
    // →
    %y = oriel.softmax %x {dim = 2}
    ```
  }];
}

def RaiseLogarithm : Oriel_RaisePass<"oriel-raise-logarithm"> {
  let summary = "Logarithms of sigmoids and of sums of exponentials, by exponentials of at most 1";
  let description = [{
    PyTorch's dynamo exporter writes `logsigmoid`, and the binary cross entropy with logits by it,
    as the logarithm of a sigmoid, and `logaddexp` as that of a sum: of logits far from 0 the
    first loses its digits, and is minus infinity in the end, and the second infinite. These are
    right within rounding to 1 + exp(..), and so are their derivatives.

    ```mlir
    %s = oriel.sigmoid %x
    %y = oriel.log %s
    // →
    %y = min(%x, 0) - log(1 + exp(-|%x|))

    %y = log(exp(%a) + exp(%b))
    // →
    %y = max(%a, %b) + log(1 + exp(-|%a - %b|))
    ```
  }];
}

def RaiseActivation : Oriel_RaisePass<"oriel-raise-activation"> {
  let summary = "SiLU, the GELU variants, and gated activations";
  let description = [{
    ```mlir
    %s = oriel.sigmoid %g
    %a = oriel.mul %g, %s
    %y = oriel.mul %a, %u
    // →
    %y = oriel.gated_activation %g, %u {kind = "silu"}
    ```
    Factors may be rounded to bf16 or f16, as files in these hold them; the op has the exact ones.
  }];
}

def RaiseRope : Oriel_RaisePass<"oriel-raise-rope"> {
  let summary = "Rotary position embedding";
  let description = [{
    Pairs are halves of the last dimension or neighbours, told by how they are sliced apart and
    joined again; a table has an angle for each element or for each pair. Some columns alone may be
    rotated, among others that are joined with them; where these are the first, and all others are
    appended, `rotary_dim` says how many.

    ```mlir
    %r = oriel.concat (-%x[.., d/2:]), %x[.., :d/2] {dim = 3 : i64}
    %y = %x * %cos + %r * %sin
    // →
    %y = oriel.rope %x, %cos, %sin
    ```
  }];
}

def RaiseAttention : Oriel_RaisePass<"oriel-raise-attention"> {
  let summary = "Scaled dot-product attention";
  let description = [{
    Starts from the product of a softmax and the values. Scales on the query, the key or the
    scores are multiplied; what scales scores and is learned, one number for each head or for all,
    scales the queries; the key may be transposed before or after it is split into heads; key
    and value heads that are repeated for grouped queries are taken as they were; scores may be
    capped by tanh. Batch and heads may be merged for the products: they come apart again where all
    three operands were made of them, so that tensor parallelism splits the heads.

    Masks may be added to the scores or replace them. They are taken apart: what follows from
    positions alone, told from tables or from comparisons of positions, becomes `causal` and
    `window`, and what is left stays a mask. A large negative number is the same as -infinity
    only if every row sees something. Where that is not known, a mask that is added stays what it
    is; of scores that are replaced by it at the end, rows that see nothing get the mean of all
    values. The guard against rows that see nothing (NaN replaced by 0, or probabilities that the
    mask hides again) is dropped, since `oriel.attention` gives 0 there.

    Scores may be in any order of heads, groups of queries that share keys, and queries, and
    transposed; a bias may be scaled with them.

    A bias that is learned, and has for each query a number for each row of keys and one for each
    column (decomposed relative positions), becomes columns of the queries, times columns of the
    keys that are 1 where a key is of that row or column. Another learned bias stays as written.

    A column more of scores, the same for all samples and queries, whose probability is dropped, is
    the sink of the attention. Beside it a large negative number is the same as -infinity.

    An `oriel.attention` that the importer made takes scales, repeated heads, masks and biases
    likewise.

    ```mlir
    %s = oriel.matmul (%q * 0.5), (transposed %k * 0.5)
    %p = oriel.softmax (%s + %mask) {dim = 3 : i64}
    %o = oriel.matmul %p, %v
    // →
    %o, %lse = oriel.attention %q, %k, %v, %mask {scale = 0.25}
    ```
  }];
}

def RaiseLayout : Oriel_RaisePass<"oriel-raise-layout"> {
  let summary = "Attention on operands as projections leave them";
  let description = [{
    Transposes that bring heads before positions sink through norms and rotary embeddings into
    attention, which then works on `[b, s, h, d]`, and meet the one behind it. Slices and splits
    of dimensions go before a transpose, merges behind it where they are split again, so that it
    meets others; one that moves no element is a reshape, and products read a factor as it is
    stored. Dimensions that are merged, batch and heads say, or samples and positions, and split
    again behind ops that work on each row or element, as pointwise ops, softmax, products and
    experts do, are apart in these too, so that one of them can be sharded. A reshape
    behind a linear layer goes before it, where it meets the one that flattened its input; a
    transpose of samples and positions before one goes behind it, where it meets that of heads;
    transposes of all that is concatenated are one of the concatenation.

    ```mlir
    %t = oriel.transpose %q {permutation = array<i64: 0, 2, 1, 3>}  // and of %k, %v
    %o, %lse = oriel.attention %t, %u, %w {scale = 0.25}
    %y = oriel.transpose %o {permutation = array<i64: 0, 2, 1, 3>}
    // →
    %y, %lse = oriel.attention %q, %k, %v {scale = 0.25, sequence_first = true}
    ```
  }];
}

def RaisePacked : Oriel_RaisePass<"oriel-raise-packed"> {
  let summary = "What is computed of packed pieces alike, at once";
  let description = [{
    Vision towers that take images of any size put the patches of all of them into one sequence, and
    loop over the images for attention, to merge patches, to project them: exported, all of that is
    there once for each image. Where the results are concatenated, images of one size, one behind
    the other, are computed at once; of other sizes, each run of one size is. So are windows, heads
    that a loop takes one by one, and towers that a loop runs image by image. An op stands for those
    of all pieces if, by its sharding rule, it would be cut into them: along rows, samples, heads.
    Then data-parallel ranks share the pieces, where these are not in front of the samples.

    Pieces must be slices that follow each other in one value, or constants, and all else that is
    read the same for all of them. It is done where it saves launches, or joins products.

    ```mlir
    %q0 = oriel.slice %q[:, 0:256]            // [1, 512, h, d]; and of %k, %v
    %q1 = oriel.slice %q[:, 256:512]
    %y = oriel.concat (oriel.attention %q0, ..), (oriel.attention %q1, ..)
    // →
    %qs = oriel.reshape %q                    // [2, 256, h, d]
    %y = oriel.reshape (oriel.attention %qs, ..)
    ```

    Rows that are picked of each image alike, to bring windows together say, are picked within a
    dimension of their own; a tensor that is concatenated with itself, as positions of images of one
    size are, is repeated.
  }];
}

def RaiseExperts : Oriel_RaisePass<"oriel-raise-experts"> {
  let summary = "Experts on the rows that choose them";
  let description = [{
    A mixture of experts is exported with all experts computed on all rows, times gates that are 0
    where a row does not choose an expert. Which it chooses are the largest of its scores, so many
    for each row: shapes are static too where only these are computed. Takes products with all
    experts' matrices (batched, or as columns of one), what is computed of them element by element,
    and the sum over experts. What is summed must be 0, with no derivative, where a row does not
    choose: by sums of one-hot rows, weights or masks scattered to the choices' places, softmax or
    sigmoid of scores that are the lowest elsewhere, and whatever makes 0 of that.

    ```mlir
    %c = oriel.topk %scores {k = 2}                 // [t, 2]
    %g = Σ_j one_hot(%c)[t, j, e] * %p[t, j]        // [t, 8]
    %h = oriel.linear %x, %all_w1                   // [t, 8 f], as [8, t, f]
    %y = oriel.matmul silu(%h), %w2                 // [8, t, d]
    %z = Σ_e %g * %y                                // [t, d]
    // →
    %h = oriel.expert_linear %x, %w1, %c            // [t, 2, f]
    %y = oriel.expert_linear silu(%h), %w2, %c      // [t, 2, d]
    %z = Σ_j %p * %y
    ```
  }];
}

def RaiseLoss : Oriel_RaisePass<"oriel-raise-loss"> {
  let summary = "Cross entropies that a model computes, of samples and positions";
  let description = [{
    The logarithm of a label's probability is its token's loss, whose op ranks divide by classes: of
    a gather of the logarithm of a softmax, or of the logits less their logsumexp.

    ```mlir
    %y = oriel.gather %log_softmax_of_x, %labels {batch_dims = 2, dim = 2}
    // →
    %losses, %lse = oriel.token_losses %x, %labels
    %y = oriel.neg %losses
    ```

    A model that computes its loss makes rows of its logits, and often leaves the last position out.
    The sum is that of the logits as they were, with labels that are ignored where nothing was
    summed: samples and positions are apart, ranks divide them, and no logits are copied. Where less
    than three of four rows are left, the slice stays.

    ```mlir
    %l = oriel.slice %logits[:, 0:15]        // of 16 positions
    %r = oriel.reshape %l                    // [b * 15, v]
    %sum, %count, %lse = oriel.cross_entropy %r, %labels
    // →
    %p = oriel.pad %labels_of_15 {high = array<i64: 0, 1>, value = -1.0e2}
    %sum, %count, %lse = oriel.cross_entropy %logits, %p
    ```
  }];
}

def RaiseMerge : Oriel_RaisePass<"oriel-raise-merge"> {
  let summary = "The merge of image features, sample by sample";
  let description = [{
    Where the recipe declares how many feature rows a sample has, the scatter over the
    flattened batch becomes a merge within each sample, which splits over the batch. Images
    of several kinds are told apart by the input that the features come from.

    ```mlir
    %y = oriel.masked_scatter %x, %mask_broadcast, %features
    // oriel-raise-merge{inputs=pixel_values rows-per-sample=49} →
    %y = oriel.merge_features %x, %mask, %features
    ```
  }];
  let options = [
    ListOption<"inputs", "inputs", "std::string",
               "Of each kind of images, an input that holds them; or *, any. None: not declared">,
    ListOption<"rowsPerSample", "rows-per-sample", "int64_t",
               "Of each kind, feature rows of a sample">,
  ];
}

def CheckImages : Pass<"oriel-check-images", "::mlir::ModuleOp"> {
  let summary = "Checks at run time that the images of each sample fit its text";
  let description = [{
    Adds an input to @main for each kind of images, the number of those that each sample
    brought, and compares it with the image positions of each merge. The attribute
    `oriel.images` of the module names that input, and the inputs that hold images with the
    rows that one image takes: those that the image features depend on and the text does not.

    ```mlir
    func.func @main(%pixels {input "pixel_values"}, %ids {input "input_ids"}) {
      %y = oriel.merge_features %x, %mask, %features
    // oriel-check-images{inputs=* per-sample=2 rows-per-image=49} →
    func.func @main(%pixels {..}, %ids {..}, %images {input "image_count"}) {
      %checked = oriel.check_image_slots %mask, %images {rows_per_image = 49}
      %y = oriel.merge_features %x, %checked, %features
    ```
  }];
  let options = [
    ListOption<"inputs", "inputs", "std::string",
               "Of each kind of images, an input that holds them; or *, any. None: not declared">,
    ListOption<"perSample", "per-sample", "int64_t", "Of each kind, most images of a sample">,
    ListOption<"rowsPerImage", "rows-per-image", "int64_t",
               "Of each kind, feature rows of an image">,
  ];
  let dependentDialects = ["::oriel::ir::OrielDialect"];
}

#endif
