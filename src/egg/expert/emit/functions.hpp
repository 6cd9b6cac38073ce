//: Memory
// Memory that a thread keeps between calls; it grows on demand and starts on a cache line.
struct Memory {
  void* start = nullptr;
  int64_t bytes = 0;
  void* at_least(int64_t wanted) {
    if (wanted > bytes) {
      std::free(start);
      bytes = (wanted + 4095) / 4096 * 4096;
      start = std::aligned_alloc(4096, bytes);
      if (start == nullptr) std::abort();
    }
    return start;
  }
  ~Memory() { std::free(start); }
};

//: lesser
inline int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }

//: team
// Number of threads for `rows` in chunks of `grain`; 0 threads means all that the caller may use.
inline int64_t team(int64_t rows, int64_t grain, int64_t threads) {
  const int64_t chunks = (rows + grain - 1) / grain;
  const int64_t most = chunks < 2 ? 1 : threads > 0 ? threads : omp_get_max_threads();
  return chunks < most ? (chunks > 0 ? chunks : 1) : most;
}

//: for_rows
// Calls body(begin, end, thread) for chunks of `grain` rows, dealt to the threads in turn; one thread is a plain call.
template <class Body>
INLINE inline void for_rows(int64_t team, int64_t rows, int64_t grain, const Body& body) {
  if (team <= 1) {
    body(0, rows, 0);
    return;
  }
#pragma omp parallel num_threads(team)
  {
    const int64_t thread = omp_get_thread_num(), step = omp_get_num_threads() * grain;
    for (int64_t begin = thread * grain; begin < rows; begin += step) body(begin, lesser(begin + grain, rows), thread);
  }
}

//: parts
// Number of parts of each loop: `split`, or one for each thread.
inline int64_t parts(int64_t split, int64_t threads) {
  return split > 0 ? split : threads > 0 ? threads : omp_get_max_threads();
}

//: for_parts
// Calls body(begin, end, part) for `parts` equal parts of [0, extent), each a multiple of `unit` long but the last.
template <class Body>
INLINE inline void for_parts(int64_t parts, int64_t extent, int64_t unit, const Body& body) {
  if (parts <= 1) {
    body(0, extent, 0);
    return;
  }
  const int64_t length = (extent + parts * unit - 1) / (parts * unit) * unit;
#pragma omp parallel for schedule(static)
  for (int64_t part = 0; part < parts; ++part) body(lesser(part * length, extent), lesser((part + 1) * length, extent), part);
}

//: unrolled
// Calls body(i) for i in [0, n), written out.
template <int64_t n, int64_t i = 0, class Body>
INLINE inline void unrolled(const Body& body) {
  if constexpr (i < n) {
    body(i);
    unrolled<n, i + 1>(body);
  }
}

//: for_lanes
// Calls body(i, lane) for i in [begin, end): in blocks of `lanes`, which become vector code, then for the rest.
template <int64_t lanes, class Body>
INLINE inline void for_lanes(int64_t begin, int64_t end, const Body& body) {
  int64_t i = begin;
  for (; i + lanes <= end; i += lanes) {
#pragma omp simd
    for (int64_t lane = 0; lane < lanes; ++lane) body(i + lane, lane);
  }
  const int64_t rest = end - i;
#pragma omp simd
  for (int64_t lane = 0; lane < rest; ++lane) body(i + lane, lane);
}

//: for_blocks
// The same, and flush(i, count) after each block.
template <int64_t lanes, class Body, class Flush>
INLINE inline void for_blocks(int64_t begin, int64_t end, const Body& body, const Flush& flush) {
  int64_t i = begin;
  for (; i + lanes <= end; i += lanes) {
#pragma omp simd
    for (int64_t lane = 0; lane < lanes; ++lane) body(i + lane, lane);
    flush(i, lanes);
  }
  const int64_t rest = end - i;
#pragma omp simd
  for (int64_t lane = 0; lane < rest; ++lane) body(i + lane, lane);
  flush(i, rest);
}

//: put
// Writes an element to memory, or, where `stream` is set, to the block that `flush` writes past the caches.
template <bool stream, class T>
INLINE inline void put(T& to, T& block, T value) {
  if constexpr (stream) {
    block = value;
  } else {
    to = value;
  }
}

//: flush
// Writes a block past the caches where it is aligned, else as usual; nothing where `stream` is not set.
template <bool stream, class T>
INLINE inline void flush(T* to, const T* block, int64_t count) {
  if constexpr (stream) {
    int64_t i = 0;
#if defined(__AVX__)
    typedef float Vector __attribute__((vector_size(32)));
    constexpr int64_t step = 32 / sizeof(T);
    if (reinterpret_cast<uintptr_t>(to) % 32 == 0) {
      for (; i + step <= count; i += step) {
        Vector vector;
        __builtin_memcpy(&vector, block + i, 32);
#if defined(__clang__)
        __builtin_nontemporal_store(vector, reinterpret_cast<Vector*>(to + i));
#else
        __builtin_ia32_movntps256(reinterpret_cast<float*>(to + i), vector);
#endif
      }
    }
#endif
    for (; i < count; ++i) to[i] = block[i];
  }
}

//: fence
// Makes what was written past the caches visible to other threads before they are told that it is there.
template <bool stream>
INLINE inline void fence() {
#if defined(__SSE__)
  if constexpr (stream) __builtin_ia32_sfence();
#endif
}

//: huge_pages
// Asks for huge pages under memory that is about to be written, where `wanted` is set: its first touch costs the
// system far less. Only a wish; a system without them goes on as before.
template <bool wanted>
inline void huge_pages(void* start, int64_t bytes) {
#if defined(MADV_HUGEPAGE)
  constexpr uintptr_t page = 4096;
  if constexpr (wanted) {
    const uintptr_t begin = (reinterpret_cast<uintptr_t>(start) + page - 1) / page * page;
    const uintptr_t end = (reinterpret_cast<uintptr_t>(start) + bytes) / page * page;
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
  }
#endif
}

//: fill
template <class T>
INLINE inline void fill(T* to, int64_t count, T value) {
  for (int64_t i = 0; i < count; ++i) to[i] = value;
}

//: lanes_sum
// Sum over lanes, as a tree: the order does not depend on the data.
template <class T, int64_t lanes>
INLINE inline T lanes_sum(T (&a)[lanes]) {
  if constexpr (lanes > 1 && lanes % 2 == 0) {
    T half[lanes / 2];
    for (int64_t i = 0; i < lanes / 2; ++i) half[i] = a[i] + a[i + lanes / 2];
    return lanes_sum(half);
  }
  T total = a[0];
  for (int64_t i = 1; i < lanes; ++i) total += a[i];
  return total;
}

//: lanes_product
template <class T, int64_t lanes>
INLINE inline T lanes_product(T (&a)[lanes]) {
  T total = a[0];
  for (int64_t i = 1; i < lanes; ++i) total *= a[i];
  return total;
}

//: lanes_maximum
template <class T, int64_t lanes>
INLINE inline T lanes_maximum(T (&a)[lanes]) {
  if constexpr (lanes > 1 && lanes % 2 == 0) {
    T half[lanes / 2];
    for (int64_t i = 0; i < lanes / 2; ++i) half[i] = maximum(a[i], a[i + lanes / 2]);
    return lanes_maximum(half);
  }
  T best = a[0];
  for (int64_t i = 1; i < lanes; ++i) best = maximum(best, a[i]);
  return best;
}

//: lanes_minimum
template <class T, int64_t lanes>
INLINE inline T lanes_minimum(T (&a)[lanes]) {
  if constexpr (lanes > 1 && lanes % 2 == 0) {
    T half[lanes / 2];
    for (int64_t i = 0; i < lanes / 2; ++i) half[i] = minimum(a[i], a[i + lanes / 2]);
    return lanes_minimum(half);
  }
  T best = a[0];
  for (int64_t i = 1; i < lanes; ++i) best = minimum(best, a[i]);
  return best;
}

//: lanes_any
template <int64_t lanes>
INLINE inline bool lanes_any(bool (&a)[lanes]) {
  bool found = false;
  for (int64_t i = 0; i < lanes; ++i) found = found | a[i];
  return found;
}

//: lanes_all
template <int64_t lanes>
INLINE inline bool lanes_all(bool (&a)[lanes]) {
  bool held = true;
  for (int64_t i = 0; i < lanes; ++i) held = held & a[i];
  return held;
}

//: exp_negative
// exp(x) for x <= 0, and NaN.
INLINE inline float exp_negative(float x) { return exp_bounded(x < -87.5f ? -87.5f : x); }
INLINE inline double exp_negative(double x) { return exp(x); }

//: add_exponentials
// Takes the values of [begin, end) into a running maximum and the sum of exponentials relative to it. The sum is scaled
// once, and only where the maximum grows; while that is minus infinity, nothing is added.
template <int64_t lanes, class T, class Value>
INLINE inline void add_exponentials(T& top, double& total, int64_t begin, int64_t end, const Value& value) {
  T highest[lanes];
  fill(highest, lanes, top);
  for_lanes<lanes>(begin, end, [&](int64_t i, int64_t lane) INLINE { highest[lane] = maximum(highest[lane], value(i)); });
  const T grown = lanes_maximum(highest);
  if (grown != top) total *= exp_negative(top - grown);
  top = grown;
  if (grown == -T(__builtin_inff())) return;
  T part[lanes] = {};
  for_lanes<lanes>(begin, end, [&](int64_t i, int64_t lane) INLINE { part[lane] += exp_negative(value(i) - grown); });
  total += lanes_sum(part);
}

//: add_exponential
// Takes one value in, without a branch: of the old sum and the new term, one keeps its scale.
template <class T, class S>
INLINE inline void add_exponential(T& top, S& total, T value) {
  const T step = value - top, scale = exp_negative(-abs(step));
  const S grown = step > 0 ? total * scale + S(1) : total + scale;
  total = value == -T(__builtin_inff()) ? total : grown;
  top = maximum(top, value);
}

//: join_exponentials
// Takes another maximum, and a sum relative to that, into a running maximum and its sum.
template <class T, class S>
INLINE inline void join_exponentials(T& top, S& total, T other, double added) {
  const T high = maximum(top, other);
  const S joined = S(total * exp_negative(top - high) + added * exp_negative(other - high));
  total = high == -T(__builtin_inff()) ? total : joined;
  top = high;
}

//: exponentials
// The sum of exponentials relative to a maximum; NaN where that is infinite, as infinity less infinity is.
template <class T, class S>
INLINE inline S exponentials(T top, S total) {
  return isfinite(top) ? total : S(__builtin_nanf(""));
}

//: scan_sum
// Replaces a block by its running sums from `run` on, and adds its total to `run`. Four neighbours are summed within a
// vector, by adding it to itself shifted by one and then by two, so that only one addition in four waits for the last.
template <class T, class A>
INLINE inline void scan_sum(T* block, A& run, int64_t count) {
  typedef T Four __attribute__((vector_size(4 * sizeof(T))));
  typedef A Wide __attribute__((vector_size(4 * sizeof(A))));
  Wide total = Wide{} + run;
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    Four part;
    __builtin_memcpy(&part, block + i, sizeof(part));
    Wide sum = __builtin_convertvector(part, Wide);
    sum += __builtin_shufflevector(sum, Wide{}, 4, 0, 1, 2);
    sum += __builtin_shufflevector(sum, Wide{}, 4, 5, 0, 1);
    part = __builtin_convertvector(total + sum, Four);
    total += __builtin_shufflevector(sum, sum, 3, 3, 3, 3);
    __builtin_memcpy(block + i, &part, sizeof(part));
  }
  run = total[0];
  for (; i < count; ++i) block[i] = T(run += A(block[i]));
}

//: keep_larger
// Keeps the first largest value and its position; NaN is larger than all.
template <class T, class I>
INLINE inline void keep_larger(T& best, I& at, T value, int64_t position) {
  const bool take = (value > best) | ((value != value) & (best == best));
  best = take ? value : best;
  at = take ? I(position) : at;
}

//: keep_smaller
// Keeps the first smallest value and its position; NaN is smaller than all.
template <class T, class I>
INLINE inline void keep_smaller(T& best, I& at, T value, int64_t position) {
  const bool take = (value < best) | ((value != value) & (best == best));
  best = take ? value : best;
  at = take ? I(position) : at;
}

//: lanes_largest
template <class T, class I, int64_t lanes>
INLINE inline int64_t lanes_largest(T (&best)[lanes], I (&at)[lanes]) {
  T value = best[0];
  I first = at[0];
  for (int64_t i = 1; i < lanes; ++i) {
    const bool same = (best[i] == value) | ((best[i] != best[i]) & (value != value));
    const bool take = (best[i] > value) | ((best[i] != best[i]) & (value == value)) | (same & (at[i] < first));
    value = take ? best[i] : value;
    first = take ? at[i] : first;
  }
  return first;
}

//: lanes_smallest
template <class T, class I, int64_t lanes>
INLINE inline int64_t lanes_smallest(T (&best)[lanes], I (&at)[lanes]) {
  T value = best[0];
  I first = at[0];
  for (int64_t i = 1; i < lanes; ++i) {
    const bool same = (best[i] == value) | ((best[i] != best[i]) & (value != value));
    const bool take = (best[i] < value) | ((best[i] != best[i]) & (value == value)) | (same & (at[i] < first));
    value = take ? best[i] : value;
    first = take ? at[i] : first;
  }
  return first;
}

//: floor_quotient
inline int64_t floor_quotient(int64_t a, int64_t b) { return a / b - (a % b < 0); }

//: floor_remainder
inline int64_t floor_remainder(int64_t a, int64_t b) { return a % b + (a % b < 0 ? b : 0); }

//: clamped
// An integer read from a tensor as an index: never outside the tensor that it indexes.
inline int64_t clamped(int64_t index, int64_t extent) { return index < 0 ? 0 : index < extent ? index : extent - 1; }

//: wrapped
// The same, where a negative value counts from the end.
inline int64_t wrapped(int64_t index, int64_t extent) { return clamped(index < 0 ? index + extent : index, extent); }

//: truth
// A bool in memory, tested as a byte: GCC makes a mask of it where it would branch on a bool.
INLINE inline bool truth(const bool& stored) { return reinterpret_cast<const uint8_t&>(stored) != 0; }

//: from_bfloat16
INLINE inline float from_bfloat16(uint16_t bits) { return __builtin_bit_cast(float, uint32_t(bits) << 16); }

//: to_bfloat16
// Rounds to nearest, ties to even; NaN stays NaN.
INLINE inline uint16_t to_bfloat16(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value);
  const uint32_t near = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return uint16_t(value != value ? 0x7fc0u : near);
}

//: round_bfloat16
INLINE inline float round_bfloat16(float value) { return from_bfloat16(to_bfloat16(value)); }

//: from_float16
// Shifts the bits into place and rescales, which is exact and gets subnormal values right; inf and NaN apart.
INLINE inline float from_float16(uint16_t bits) {
  const uint32_t wide = (uint32_t(bits) & 0x7fffu) << 13;
  const float scaled = __builtin_bit_cast(float, wide) * 0x1p112f;
  const uint32_t special = __builtin_bit_cast(uint32_t, scaled) | 0x7f800000u | wide;
  const uint32_t magnitude = wide >= 0x0f800000u ? special & (0x7f800000u | wide) : __builtin_bit_cast(uint32_t, scaled);
  return __builtin_bit_cast(float, magnitude | ((uint32_t(bits) & 0x8000u) << 16));
}

//: to_float16
// Rounds to nearest, ties to even; beyond 65504 to infinity; NaN stays NaN.
INLINE inline uint16_t to_float16(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value), sign = (bits >> 16) & 0x8000u, size = bits & 0x7fffffffu;
  const float small = __builtin_bit_cast(float, size) + 0.5f;
  const uint32_t subnormal = __builtin_bit_cast(uint32_t, small) - 0x3f000000u;
  const uint32_t normal = (size - 0x38000000u + 0xfffu + ((size >> 13) & 1u)) >> 13;
  const uint32_t finite = size < 0x38800000u ? subnormal : normal;
  return uint16_t(sign | (size > 0x7f800000u ? 0x7e00u : size >= 0x477ff000u ? 0x7c00u : finite));
}

//: round_float16
INLINE inline float round_float16(float value) { return from_float16(to_float16(value)); }

//: maximum
// The larger value; NaN wins.
template <class T>
INLINE inline T maximum(T a, T b) {
  const T larger = a > b ? a : b;
  return a != a ? a : larger;
}

//: minimum
// The smaller value; NaN wins.
template <class T>
INLINE inline T minimum(T a, T b) {
  const T smaller = a < b ? a : b;
  return a != a ? a : smaller;
}

//: fmax
// The larger value; NaN loses.
template <class T>
INLINE inline T fmax(T a, T b) {
  const T larger = a > b ? a : b;
  return b != b ? a : larger;
}

//: fmin
// The smaller value; NaN loses.
template <class T>
INLINE inline T fmin(T a, T b) {
  const T smaller = a < b ? a : b;
  return b != b ? a : smaller;
}

//: fma
INLINE inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
INLINE inline double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }

//: abs
INLINE inline float abs(float x) { return __builtin_fabsf(x); }
INLINE inline double abs(double x) { return __builtin_fabs(x); }
template <class T>
INLINE inline T abs(T x) { return x < 0 ? T(-x) : x; }

//: sign
template <class T>
INLINE inline T sign(T x) { return T((x > 0) - (x < 0)); }

//: sqrt
INLINE inline float sqrt(float x) { return __builtin_sqrtf(x); }
INLINE inline double sqrt(double x) { return __builtin_sqrt(x); }

//: rsqrt
INLINE inline float rsqrt(float x) { return 1.0f / __builtin_sqrtf(x); }
INLINE inline double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }

//: floor
INLINE inline float floor(float x) { return __builtin_floorf(x); }
INLINE inline double floor(double x) { return __builtin_floor(x); }

//: ceil
INLINE inline float ceil(float x) { return __builtin_ceilf(x); }
INLINE inline double ceil(double x) { return __builtin_ceil(x); }

//: round
// To nearest, ties to even.
INLINE inline float round(float x) { return __builtin_roundevenf(x); }
INLINE inline double round(double x) { return __builtin_roundeven(x); }

//: trunc
INLINE inline float trunc(float x) { return __builtin_truncf(x); }
INLINE inline double trunc(double x) { return __builtin_trunc(x); }

//: frac
template <class T>
INLINE inline T frac(T x) { return x - trunc(x); }

//: copysign
INLINE inline float copysign(float x, float y) { return __builtin_copysignf(x, y); }
INLINE inline double copysign(double x, double y) { return __builtin_copysign(x, y); }

//: isnan
template <class T>
INLINE inline bool isnan(T x) { return x != x; }

//: isinf
INLINE inline bool isinf(float x) { return __builtin_fabsf(x) == __builtin_inff(); }
INLINE inline bool isinf(double x) { return __builtin_fabs(x) == __builtin_inf(); }

//: isfinite
INLINE inline bool isfinite(float x) { return __builtin_fabsf(x) < __builtin_inff(); }
INLINE inline bool isfinite(double x) { return __builtin_fabs(x) < __builtin_inf(); }

//: fmod
// The remainder with the sign of a; integers by zero give 0.
inline float fmod(float a, float b) { return __builtin_fmodf(a, b); }
inline double fmod(double a, double b) { return __builtin_fmod(a, b); }
template <class T>
INLINE inline T fmod(T a, T b) { return b == 0 || b == T(-1) ? T(0) : T(a % b); }

//: remainder
// The remainder with the sign of b.
template <class T>
INLINE inline T remainder(T a, T b) {
  const T rest = fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? T(rest + b) : rest;
}

//: trunc_divide
// The quotient rounded to zero; integers by zero give 0.
INLINE inline float trunc_divide(float a, float b) { return __builtin_truncf(a / b); }
INLINE inline double trunc_divide(double a, double b) { return __builtin_trunc(a / b); }
template <class T>
INLINE inline T trunc_divide(T a, T b) { return b == 0 ? T(0) : b == T(-1) ? T(0 - a) : T(a / b); }

//: floor_divide_real
// The quotient rounded down such that a = b * q + remainder(a, b), as in Python.
template <class T>
INLINE inline T floor_divide_real(T a, T b) {
  const T rest = fmod(a, b);
  const T near = (a - rest) / b - T((rest != 0) & ((b < 0) != (rest < 0)));
  const T down = floor(near);
  const T whole = near != 0 ? down + T(near - down > T(0.5)) : copysign(T(0), a / b);
  return b == 0 ? a / b : whole;
}

//: floor_divide
INLINE inline float floor_divide(float a, float b) { return floor_divide_real(a, b); }
INLINE inline double floor_divide(double a, double b) { return floor_divide_real(a, b); }
template <class T>
INLINE inline T floor_divide(T a, T b) {
  const T quotient = trunc_divide(a, b);
  return b != 0 && (a % (b == T(-1) ? T(1) : b) != 0) && ((a < 0) != (b < 0)) ? T(quotient - 1) : quotient;
}

//: bitwise_not
INLINE inline bool bitwise_not(bool x) { return !x; }
template <class T>
INLINE inline T bitwise_not(T x) { return T(~x); }

//: shift_left
template <class T>
INLINE inline T shift_left(T a, T b) { return b < 0 || b >= T(8 * sizeof(T)) ? T(0) : T(uint64_t(a) << b); }

//: shift_right
template <class T>
INLINE inline T shift_right(T a, T b) { return T(a >> (b < 0 || b >= T(8 * sizeof(T)) ? T(8 * sizeof(T) - 1) : b)); }

//: power_of_two
// 2^k for a whole k in [-1022, 1023], by its bits.
INLINE inline double power_of_two(double k) {
  return __builtin_bit_cast(double, (__builtin_bit_cast(int64_t, k + 0x1.8p52) + 1023) << 52);
}

//: exp_wide
// exp(x) with a relative error below 1e-14 for results that a float can hold; what is beyond saturates. Taylor series
// of degree 11 on |r| <= ln 2 / 2.
INLINE inline double exp_wide(double x) {
  const double low = x < -700.0 ? -700.0 : x;
  const double near = low > 700.0 ? 700.0 : low;
  const double k = __builtin_fma(near, 1.4426950408889634, 0x1.8p52) - 0x1.8p52;
  const double r = __builtin_fma(k, -1.9082149292705877e-10, __builtin_fma(k, -0.6931471803691238, near));
  double p = 2.505210838544172e-8;
  p = __builtin_fma(p, r, 2.755731922398589e-7);
  p = __builtin_fma(p, r, 2.7557319223985893e-6);
  p = __builtin_fma(p, r, 2.48015873015873e-5);
  p = __builtin_fma(p, r, 1.984126984126984e-4);
  p = __builtin_fma(p, r, 1.388888888888889e-3);
  p = __builtin_fma(p, r, 8.333333333333333e-3);
  p = __builtin_fma(p, r, 4.1666666666666664e-2);
  p = __builtin_fma(p, r, 1.6666666666666666e-1);
  p = __builtin_fma(p, r, 0.5);
  p = __builtin_fma(p, r, 1.0);
  p = __builtin_fma(p, r, 1.0);
  return p * power_of_two(k);
}

//: log_wide
// log(x) of a positive finite normal double with a relative error below 1e-13. x = m 2^k with m in [sqrt(1/2), sqrt(2));
// log(m) = 2 atanh((m - 1) / (m + 1)) by its series.
INLINE inline double log_wide(double x) {
  const int64_t bits = __builtin_bit_cast(int64_t, x), shifted = bits - 0x3fe6a09e667f3bcd;
  const int64_t power = shifted >> 52 << 52;
  const double m = __builtin_bit_cast(double, bits - power);
  const double k = __builtin_bit_cast(double, ((shifted >> 52) + 0x4338000000000000)) - 0x1.8p52;
  const double s = (m - 1.0) / (m + 1.0), z = s * s;
  double p = 1.0 / 19;
  p = __builtin_fma(p, z, 1.0 / 17);
  p = __builtin_fma(p, z, 1.0 / 15);
  p = __builtin_fma(p, z, 1.0 / 13);
  p = __builtin_fma(p, z, 1.0 / 11);
  p = __builtin_fma(p, z, 1.0 / 9);
  p = __builtin_fma(p, z, 1.0 / 7);
  p = __builtin_fma(p, z, 1.0 / 5);
  p = __builtin_fma(p, z, 1.0 / 3);
  return __builtin_fma(k, 0.6931471805599453, 2 * __builtin_fma(p * z, s, s));
}

//: log_whole
// The same for every float: -inf at 0, NaN below, inf and NaN as they are.
INLINE inline double log_whole(double x) {
  const double value = log_wide(x);
  const double most = x == __builtin_inf() ? x : value;
  const double least = x == 0 ? -__builtin_inf() : most;
  return x >= 0 ? least : __builtin_nan("");
}

//: atan_wide
// atan(x) with an absolute error below 1e-13. Reduced by atan(x) = pi/2 - atan(1/x) and pi/4 + atan((x-1)/(x+1)) to
// |x| <= tan(pi/8), where a polynomial of degree 7 in x^2 fits.
INLINE inline double atan_wide(double x) {
  const double size = __builtin_fabs(x);
  const double unit = size > 1 ? 1 / size : size;
  const bool upper = unit > 0.4142135623730951;
  const double y = upper ? (unit - 1) / (unit + 1) : unit, z = y * y;
  double p = 0.0308949499931347357;
  p = __builtin_fma(p, z, -0.0589107081588049899);
  p = __builtin_fma(p, z, 0.0756854224843393716);
  p = __builtin_fma(p, z, -0.0907913776084019846);
  p = __builtin_fma(p, z, 0.11110449983208607);
  p = __builtin_fma(p, z, -0.142856935955700652);
  p = __builtin_fma(p, z, 0.199999996856045597);
  p = __builtin_fma(p, z, -0.333333333316969985);
  const double near = __builtin_fma(p * z, y, y) + (upper ? 0.7853981633974483 : 0.0);
  return __builtin_copysign(size > 1 ? 1.5707963267948966 - near : near, x);
}

//: turn
// The rest of x after k quarter turns, |rest| <= pi/4 and a bit, and k in `quarter`. Exact to 1e-16 for |x| < 2^50.
INLINE inline double turn(double x, int64_t& quarter) {
  const double shifted = __builtin_fma(x, 0.6366197723675814, 0x1.8p52), k = shifted - 0x1.8p52;
  quarter = __builtin_bit_cast(int64_t, shifted);
  const double r = __builtin_fma(k, -6.123233995736766e-17, __builtin_fma(k, -1.5707963267948966, x));
  return __builtin_fma(k, 1.4973849048591833e-33, r);
}

//: sin_quarter
// sin of |r| <= pi/4 and a bit, by Taylor's series of degree 15.
INLINE inline double sin_quarter(double r) {
  const double z = r * r;
  double p = -7.647163731819816e-13;
  p = __builtin_fma(p, z, 1.6059043836821613e-10);
  p = __builtin_fma(p, z, -2.505210838544172e-8);
  p = __builtin_fma(p, z, 2.7557319223985893e-6);
  p = __builtin_fma(p, z, -1.984126984126984e-4);
  p = __builtin_fma(p, z, 8.333333333333333e-3);
  p = __builtin_fma(p, z, -1.6666666666666666e-1);
  return __builtin_fma(p * z, r, r);
}

//: cos_quarter
// cos of |r| <= pi/4 and a bit, by Taylor's series of degree 14.
INLINE inline double cos_quarter(double r) {
  const double z = r * r;
  double p = -1.1470745597729725e-11;
  p = __builtin_fma(p, z, 2.08767569878681e-9);
  p = __builtin_fma(p, z, -2.755731922398589e-7);
  p = __builtin_fma(p, z, 2.48015873015873e-5);
  p = __builtin_fma(p, z, -1.388888888888889e-3);
  p = __builtin_fma(p, z, 4.1666666666666664e-2);
  return __builtin_fma(p * z, z, __builtin_fma(z, -0.5, 1.0));
}

//: exp_bounded
// exp(x) for x in [-87.5, 89]; error below 1 ulp, but 0 below 1.7e-38: slow subnormal numbers never come up.
// x = k ln 2 + r with |r| <= ln 2 / 2; Taylor's series of degree 7 gives exp(r). The low bits of `shifted` hold k; they
// make the scale 2^(k-1), which is 0 for k = -126.
INLINE inline float exp_bounded(float x) {
  const float shifted = __builtin_fmaf(x, 1.44269504f, 12582912.0f), k = shifted - 12582912.0f;
  const float r = __builtin_fmaf(k, 1.90465421e-9f, __builtin_fmaf(k, -0.693147182f, x));
  float p = 1.98412698e-4f;
  p = __builtin_fmaf(p, r, 1.38888889e-3f);
  p = __builtin_fmaf(p, r, 8.33333333e-3f);
  p = __builtin_fmaf(p, r, 4.16666667e-2f);
  p = __builtin_fmaf(p, r, 1.66666667e-1f);
  p = __builtin_fmaf(p, r, 0.5f);
  p = __builtin_fmaf(p, r, 1.0f);
  p = __builtin_fmaf(p, r, 1.0f);
  return (p + p) * __builtin_bit_cast(float, (__builtin_bit_cast(uint32_t, shifted) << 23) + 0x3f000000u);
}

//: exp
// The same for every float.
INLINE inline float exp(float x) {
  const float low = x < -87.5f ? -87.5f : x;
  return exp_bounded(low > 89.0f ? 89.0f : low);
}
inline double exp(double x) { return __builtin_exp(x); }

//: exp2
// Error below 1 ulp, in double.
INLINE inline float exp2(float x) { return float(exp_wide(x * 0.6931471805599453)); }
inline double exp2(double x) { return __builtin_exp2(x); }

//: expm1
// Error below 1 ulp. x = k ln 2 + r; with q = exp(r) - 1 the result is 2^k q + (2^k - 1), at half scale so that 2^128
// does not overflow.
INLINE inline float expm1(float x) {
  const float low = x < -26.0f ? -26.0f : x;
  const float near = low > 89.0f ? 89.0f : low;
  const float k = __builtin_fmaf(near, 1.44269504f, 12582912.0f) - 12582912.0f;
  const float r = __builtin_fmaf(k, 1.90465421e-9f, __builtin_fmaf(k, -0.693147182f, near));
  float p = 1.98412698e-4f;
  p = __builtin_fmaf(p, r, 1.38888889e-3f);
  p = __builtin_fmaf(p, r, 8.33333333e-3f);
  p = __builtin_fmaf(p, r, 4.16666667e-2f);
  p = __builtin_fmaf(p, r, 1.66666667e-1f);
  p = __builtin_fmaf(p, r, 0.5f);
  const float q = __builtin_fmaf(p * r, r, r), scale = __builtin_bit_cast(float, (int32_t(k) + 126) << 23);
  const float value = 2 * __builtin_fmaf(scale, q, scale - 0.5f);
  return x == 0 ? x : value;
}
inline double expm1(double x) { return __builtin_expm1(x); }

//: log
// Error below 1 ulp. x = m 2^k with m in [sqrt(1/2), sqrt(2)); log(1 + r) = r - r^2/2 + r^3 p(r) with p of degree 8.
INLINE inline float log(float x) {
  const bool tiny = x < 1.17549435e-38f;
  const int32_t bits = __builtin_bit_cast(int32_t, tiny ? x * 8388608.0f : x), shifted = bits - 0x3f3504f3;
  const float r = __builtin_bit_cast(float, bits - (shifted >> 23 << 23)) - 1.0f;
  const float k = float((shifted >> 23) - (tiny ? 23 : 0));
  float p = 0.0674648996f;
  p = __builtin_fmaf(p, r, -0.116756154f);
  p = __builtin_fmaf(p, r, 0.118882118f);
  p = __builtin_fmaf(p, r, -0.124055979f);
  p = __builtin_fmaf(p, r, 0.142195464f);
  p = __builtin_fmaf(p, r, -0.166679952f);
  p = __builtin_fmaf(p, r, 0.20002119f);
  p = __builtin_fmaf(p, r, -0.250000096f);
  p = __builtin_fmaf(p, r, 0.333333126f);
  const float square = r * r;
  const float small = __builtin_fmaf(k, -1.90465421e-9f, __builtin_fmaf(square, -0.5f, p * square * r));
  const float value = __builtin_fmaf(k, 0.693147182f, r + small);
  const float most = x == __builtin_inff() ? x : value;
  const float least = x == 0 ? -__builtin_inff() : most;
  return x >= 0 ? least : __builtin_nanf("");
}
inline double log(double x) { return __builtin_log(x); }

//: log2
// Error below 1 ulp, in double.
INLINE inline float log2(float x) { return float(log_whole(x) * 1.4426950408889634); }
inline double log2(double x) { return __builtin_log2(x); }

//: log10
// Error below 1 ulp, in double.
INLINE inline float log10(float x) { return float(log_whole(x) * 0.4342944819032518); }
inline double log10(double x) { return __builtin_log10(x); }

//: log1p
// Error below 2 ulp: log of the rounded sum, plus what the rounding lost.
INLINE inline float log1p(float x) {
  const float sum = 1.0f + x;
  const float lost = (x - (sum - 1.0f)) / sum;
  return log(sum) + (sum > 0 && sum < __builtin_inff() ? lost : 0.0f);
}
inline double log1p(double x) { return __builtin_log1p(x); }

//: log_add_exp
// log(exp(a) + exp(b)).
template <class T>
INLINE inline T log_add_exp(T a, T b) {
  const T high = maximum(a, b), low = minimum(a, b);
  return (low == high) & (high - high != 0) ? high : high + log1p(exp(low - high));
}

//: pow
// Error below 1 ulp for floats, in double: exp(y log |x|), with the sign and the special values of C's pow.
INLINE inline float pow(float x, float y) {
  const double size = __builtin_fabs(double(x)), wide = double(y) * log_whole(size);
  const bool whole = __builtin_truncf(y) == y, odd = whole & (__builtin_truncf(y * 0.5f) * 2.0f != y);
  const float least = wide < -700.0 ? 0.0f : float(exp_wide(wide));
  const float value = wide > 700.0 ? __builtin_inff() : least;
  const bool one = (y == 0) | (x == 1) | ((x == -1) & (__builtin_fabsf(y) == __builtin_inff()));
  const bool invalid = (x < 0) & !whole & (x > -__builtin_inff());
  const float real = odd ? __builtin_copysignf(value, x) : value;
  const float known = invalid | (x != x) | (y != y) ? __builtin_nanf("") : real;
  return one ? 1.0f : known;
}
inline double pow(double x, double y) { return __builtin_pow(x, y); }
template <class T>
inline T pow(T x, T y) {
  if (y < 0) return x == T(1) ? T(1) : x == T(-1) ? (y % 2 ? T(-1) : T(1)) : T(0);
  T power = 1;
  for (uint64_t rest = uint64_t(y); rest; rest >>= 1, x = T(x * x)) power = rest & 1 ? T(power * x) : power;
  return power;
}

//: sin
// Error below 1 ulp for |x| < 2^50, in double.
INLINE inline float sin(float x) {
  int64_t quarter;
  const double r = turn(x, quarter), value = quarter & 1 ? cos_quarter(r) : sin_quarter(r);
  const float signed_value = float(quarter & 2 ? -value : value);
  return x == 0 ? x : signed_value;
}
inline double sin(double x) { return __builtin_sin(x); }

//: cos
// Error below 1 ulp for |x| < 2^50, in double.
INLINE inline float cos(float x) {
  int64_t quarter;
  const double r = turn(x, quarter), value = quarter & 1 ? sin_quarter(r) : cos_quarter(r);
  return float((quarter + 1) & 2 ? -value : value);
}
inline double cos(double x) { return __builtin_cos(x); }

//: tan
// Error below 1 ulp for |x| < 2^50, in double.
INLINE inline float tan(float x) {
  int64_t quarter;
  const double r = turn(x, quarter), s = sin_quarter(r), c = cos_quarter(r);
  const float value = float(quarter & 1 ? -c / s : s / c);
  return x == 0 ? x : value;
}
inline double tan(double x) { return __builtin_tan(x); }

//: asin
// Error below 1 ulp, in double: atan(x / sqrt(1 - x^2)).
INLINE inline float asin(float x) {
  const double wide = x;
  return float(atan_wide(wide / __builtin_sqrt((1 - wide) * (1 + wide))));
}
inline double asin(double x) { return __builtin_asin(x); }

//: acos
// Error below 1 ulp, in double: 2 atan(sqrt((1 - x) / (1 + x))).
INLINE inline float acos(float x) {
  const double wide = x;
  return float(2 * atan_wide(__builtin_sqrt((1 - wide) / (1 + wide))));
}
inline double acos(double x) { return __builtin_acos(x); }

//: atan
// Error below 1 ulp, in double.
INLINE inline float atan(float x) { return float(atan_wide(x)); }
inline double atan(double x) { return __builtin_atan(x); }

//: atan2
inline float atan2(float y, float x) { return __builtin_atan2f(y, x); }
inline double atan2(double y, double x) { return __builtin_atan2(y, x); }

//: sinh
// Error below 1 ulp, in double: (e^x - e^-x) / 2, its series near 0.
INLINE inline float sinh(float x) {
  const double wide = x, grown = exp_wide(wide), series = wide + wide * wide * wide * (1.0 / 6);
  const float value = float(__builtin_fabs(wide) < 1e-3 ? series : 0.5 * (grown - 1 / grown));
  return x == 0 ? x : value;
}
inline double sinh(double x) { return __builtin_sinh(x); }

//: cosh
// Error below 1 ulp, in double.
INLINE inline float cosh(float x) {
  const double grown = exp_wide(x);
  return float(0.5 * (grown + 1 / grown));
}
inline double cosh(double x) { return __builtin_cosh(x); }

//: tanh
// Error below 2 ulp. Below 0.56 x + x^3 p(x^2), above 1 - 2 / (e^2x + 1), which is 1 from 10 on.
INLINE inline float tanh(float x) {
  const float size = __builtin_fabsf(x), z = x * x;
  float p = 0.00236538618f;
  p = __builtin_fmaf(p, z, -0.00838888745f);
  p = __builtin_fmaf(p, z, 0.0217752241f);
  p = __builtin_fmaf(p, z, -0.0539586176f);
  p = __builtin_fmaf(p, z, 0.133332877f);
  p = __builtin_fmaf(p, z, -0.333333326f);
  const float near = __builtin_fmaf(p * z, x, x);
  const float most = size > 10.0f ? 10.0f : size;
  const float far = 1.0f - 2.0f / (exp_bounded(most + most) + 1.0f);
  return size < 0.56f ? near : __builtin_copysignf(far, x);
}
inline double tanh(double x) { return __builtin_tanh(x); }

//: asinh
// Error below 1 ulp, in double: log(x + sqrt(x^2 + 1)), its series near 0.
INLINE inline float asinh(float x) {
  const double size = __builtin_fabs(double(x)), series = size - size * size * size * (1.0 / 6);
  const double value = log_whole(size + __builtin_sqrt(size * size + 1));
  return __builtin_copysignf(float(size < 1e-3 ? series : value), x);
}
inline double asinh(double x) { return __builtin_asinh(x); }

//: acosh
// Error below 1 ulp, in double: log(x + sqrt(x^2 - 1)).
INLINE inline float acosh(float x) {
  const double wide = x;
  return float(x < 1 ? __builtin_nan("") : log_whole(wide + __builtin_sqrt((wide - 1) * (wide + 1))));
}
inline double acosh(double x) { return __builtin_acosh(x); }

//: atanh
// Error below 1 ulp, in double: log((1 + x) / (1 - x)) / 2, its series near 0.
INLINE inline float atanh(float x) {
  const double wide = x, series = wide + wide * wide * wide * (1.0 / 3);
  const float value = float(__builtin_fabs(wide) < 1e-3 ? series : 0.5 * log_whole((1 + wide) / (1 - wide)));
  return x == 0 ? x : value;
}
inline double atanh(double x) { return __builtin_atanh(x); }

//: sigmoid
// Error below 2.2 ulp; 0 below -89.
INLINE inline float sigmoid(float x) { return 1.0f / (1.0f + exp(-x)); }
INLINE inline double sigmoid(double x) {
  const double e = exp(-__builtin_fabs(x));
  return (x < 0 ? e : 1.0) / (1.0 + e);
}

//: erf
// Error below 1.2 ulp; 1 from 3.92 on. Below 1.1 x + x p(x^2), above a polynomial about 2.25.
INLINE inline float erf(float x) {
  const float size = __builtin_fabsf(x), z = x * x, near = size > 3.92f ? 3.92f : size, t = near - 2.25f;
  float p = 7.23606863e-05f;
  p = __builtin_fmaf(p, z, -0.000782473944f);
  p = __builtin_fmaf(p, z, 0.00516773108f);
  p = __builtin_fmaf(p, z, -0.026843518f);
  p = __builtin_fmaf(p, z, 0.112833641f);
  p = __builtin_fmaf(p, z, -0.376126111f);
  p = __builtin_fmaf(p, z, 0.128379166f);
  float q = -9.37316963e-06f;
  q = __builtin_fmaf(q, t, 4.90315724e-05f);
  q = __builtin_fmaf(q, t, -3.27127091e-05f);
  q = __builtin_fmaf(q, t, -0.0003328413f);
  q = __builtin_fmaf(q, t, 0.00101535243f);
  q = __builtin_fmaf(q, t, -0.000707026105f);
  q = __builtin_fmaf(q, t, -0.00290983543f);
  q = __builtin_fmaf(q, t, 0.0106749013f);
  q = __builtin_fmaf(q, t, -0.0190824457f);
  q = __builtin_fmaf(q, t, 0.0217212364f);
  q = __builtin_fmaf(q, t, -0.0160703808f);
  q = __builtin_fmaf(q, t, 0.00714247022f);
  q = __builtin_fmaf(q, t, 0.998537302f);
  return size < 1.1f ? __builtin_fmaf(p, x, x) : __builtin_copysignf(q, x);
}
inline double erf(double x) { return __builtin_erf(x); }

//: erfc
inline float erfc(float x) { return float(__builtin_erfc(x)); }
inline double erfc(double x) { return __builtin_erfc(x); }

//: normal_cdf
// Share of the normal distribution below x, with an absolute error below 2e-7, which is what 1 + erf loses below 0 as
// well; 0 and 1 from 5.55 on. 1/2 + x p(x^2) / q(x^2), whose relative error is below 5e-8 but for rounding.
INLINE inline float normal_cdf(float x) {
  const float z = x * x, near = z > 31.0f ? 31.0f : z;
  float p = 2.02134238e-8f;
  p = __builtin_fmaf(p, near, 6.32191541e-6f);
  p = __builtin_fmaf(p, near, 1.87810889e-4f);
  p = __builtin_fmaf(p, near, 4.7928323e-3f);
  p = __builtin_fmaf(p, near, 0.0358859561f);
  p = __builtin_fmaf(p, near, 0.398942262f);
  float q = 1.12070018e-6f;
  q = __builtin_fmaf(q, near, 7.88456673e-5f);
  q = __builtin_fmaf(q, near, 1.99397048e-3f);
  q = __builtin_fmaf(q, near, 0.0297854226f);
  q = __builtin_fmaf(q, near, 0.256618708f);
  q = __builtin_fmaf(q, near, 1.0f);
  const float half = x * p / q;
  return 0.5f + (z > 30.8f ? __builtin_copysignf(0.5f, x) : half);
}
INLINE inline double normal_cdf(double x) { return 0.5 * (1.0 + erf(x * 0.7071067811865476)); }
