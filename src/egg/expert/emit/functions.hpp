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

//: exp
// Error below 1 ulp. x = k ln 2 + r with |r| <= ln 2 / 2; a polynomial of degree 7 gives exp(r); scaling by 2^k in
// two steps keeps subnormal results right.
INLINE inline float exp(float x) {
  const float low = x < -104.0f ? -104.0f : x;
  const float near = low > 89.0f ? 89.0f : low;
  const float k = __builtin_fmaf(near, 1.44269504f, 12582912.0f) - 12582912.0f;
  const float r = __builtin_fmaf(k, 1.42860677e-6f, __builtin_fmaf(k, -0.693148613f, near));
  float p = 1.98412698e-4f;
  p = __builtin_fmaf(p, r, 1.38888889e-3f);
  p = __builtin_fmaf(p, r, 8.33333333e-3f);
  p = __builtin_fmaf(p, r, 4.16666667e-2f);
  p = __builtin_fmaf(p, r, 1.66666667e-1f);
  p = __builtin_fmaf(p, r, 0.5f);
  p = __builtin_fmaf(p, r, 1.0f);
  p = __builtin_fmaf(p, r, 1.0f);
  const int32_t whole = int32_t(k), half = whole >> 1;
  return p * __builtin_bit_cast(float, (half + 127) << 23) * __builtin_bit_cast(float, (whole - half + 127) << 23);
}
inline double exp(double x) { return __builtin_exp(x); }

//: rsqrt
INLINE inline float rsqrt(float x) { return 1.0f / __builtin_sqrtf(x); }
INLINE inline double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
