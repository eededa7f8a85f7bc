#include "ir/scalar/functions.h"

#include <initializer_list>
#include <limits>

namespace oriel::ir {

namespace {

using mlir::Value;
namespace arith = mlir::arith;

// The coefficient of the highest power first.
Value polynomial(const At& at, Value x, std::initializer_list<float> coefficients) {
  Value sum;
  for (float coefficient : coefficients) {
    Value next = at.single(coefficient);
    sum = sum ? at.add(at.mul(sum, x), next) : next;
  }
  return sum;
}

Value bitsOf(const At& at, Value x) {
  return at.make<arith::BitcastOp>(at.builder.getI32Type(), x);
}
Value floatOf(const At& at, Value bits) {
  return at.make<arith::BitcastOp>(at.builder.getF32Type(), bits);
}
Value integer(const At& at, uint32_t bits) {
  return at.make<arith::ConstantOp>(
      at.builder.getIntegerAttr(at.builder.getI32Type(), static_cast<int32_t>(bits)));
}

// `magnitude`, which has no sign, with that of `x`.
Value withSignOf(const At& at, Value magnitude, Value x) {
  Value sign = at.make<arith::AndIOp>(bitsOf(at, x), integer(at, 0x80000000));
  return floatOf(at, at.make<arith::OrIOp>(bitsOf(at, magnitude), sign));
}

Value magnitudeOf(const At& at, Value x) { return at.make<mlir::math::AbsFOp>(x); }

// e^x for -86.9 <= x <= 88.72; elsewhere anything.
Value boundedExpOf(const At& at, Value x) {
  // Adding 1.5 * 2^23 rounds to a whole number, which is then in the low bits.
  Value round = at.single(12582912.0f);
  Value shifted = at.add(at.mul(x, at.single(1.44269504f)), round);
  Value n = at.sub(shifted, round);
  // ln 2 in two parts, the first short enough for an exact product.
  Value high = at.sub(x, at.mul(n, at.single(0.693359375f)));
  Value r = at.add(high, at.mul(n, at.single(2.12194440e-4f)));
  // Twice the series of e^r, for half of 2^n: 2^128 would not be a number.
  Value p = polynomial(
      at, r, {2.0f / 5040, 2.0f / 720, 2.0f / 120, 2.0f / 24, 2.0f / 6, 1.0f, 2.0f, 2.0f});
  Value whole = at.make<arith::ShLIOp>(bitsOf(at, shifted), integer(at, 23));
  Value exponent = at.make<arith::AddIOp>(whole, integer(at, uint32_t{126} << 23));
  return at.mul(p, floatOf(at, exponent));
}

}  // namespace

Value expOf(const At& at, Value x) {
  Value infinity = at.single(std::numeric_limits<float>::infinity());
  Value bounded = at.select(at.greater(x, at.single(88.7228394f)), infinity, boundedExpOf(at, x));
  return at.select(at.less(x, at.single(-86.9f)), at.single(0), bounded);
}

Value sigmoidOf(const At& at, Value x) {
  return at.div(at.single(1), at.add(at.single(1), expOf(at, at.neg(x))));
}

Value tanhOf(const At& at, Value x) {
  Value a = magnitudeOf(at, x);
  Value isSmall = at.less(a, at.single(0.625f));
  // |x| < 0.625: x + x³ P(x²). The argument is clamped so that no infinity arises.
  Value z = at.select(isSmall, at.mul(x, x), at.single(0.390625f));
  Value p = polynomial(
      at, z, {-0.00571703678f, 0.0206505786f, -0.0537434965f, 0.133314908f, -0.333332837f});
  Value small = at.add(x, at.mul(x, at.mul(z, p)));
  // Above: 1 - 2 / (e^2|x| + 1).
  Value twice = at.select(at.greater(a, at.single(10)), at.single(20), at.mul(at.single(2), a));
  Value power = at.add(boundedExpOf(at, twice), at.single(1));
  Value large = at.sub(at.single(1), at.div(at.single(2), power));
  return at.select(isSmall, small, withSignOf(at, large, x));
}

Value erfOf(const At& at, Value x) {
  Value a = magnitudeOf(at, x);
  Value isSmall = at.less(a, at.single(1));
  // |x| < 1: x P(x²).
  Value z = at.select(isSmall, at.mul(x, x), at.single(1));
  Value p = polynomial(at, z,
                       {7.85385782e-05f, -0.000801019254f, 0.00518832775f, -0.0268538110f,
                        0.112835854f, -0.376126260f, 1.12837911f});
  Value small = at.mul(x, p);
  // 1 <= |x| <= 4: 1 - exp(-Q(|x|)); above, erf rounds to 1.
  Value b = at.select(at.greater(a, at.single(4)), at.single(4), a);
  Value q = polynomial(at, b,
                       {-0.000186380086f, 0.00294766668f, -0.0218380961f, 0.103106819f,
                        0.638144732f, 1.12708926f, 0.000341512583f});
  Value large = at.sub(at.single(1), boundedExpOf(at, at.neg(q)));
  return at.select(isSmall, small, withSignOf(at, large, x));
}

}  // namespace oriel::ir
