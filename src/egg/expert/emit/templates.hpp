//: order_float32
// A number whose order as an unsigned one is that of the floats: -0 is 0, and NaN is the largest.
inline uint32_t order_float32(float value) {
  uint32_t bits;
  __builtin_memcpy(&bits, &value, 4);
  const uint32_t ordered = bits ^ (uint32_t(int32_t(bits) >> 31) | 0x80000000u);
  return value != value ? 0xFFFFFFFFu : value == 0 ? 0x80000000u : ordered;
}

//: order_float64
inline uint64_t order_float64(double value) {
  uint64_t bits;
  __builtin_memcpy(&bits, &value, 8);
  const uint64_t ordered = bits ^ (uint64_t(int64_t(bits) >> 63) | 0x8000000000000000u);
  return value != value ? ~uint64_t(0) : value == 0 ? 0x8000000000000000u : ordered;
}

//: order_half
// The same for 16 bits of a half type whose infinity has the bits `infinity`.
inline uint16_t order_half(uint16_t bits, int infinity) {
  const int magnitude = bits & 0x7FFF;
  const int ordered = bits & 0x8000 ? ~bits : bits | 0x8000;
  return uint16_t(magnitude > infinity ? 0xFFFF : magnitude == 0 ? 0x8000 : ordered);
}

//: order_integer
// The same for an integer of so many bits.
inline uint64_t order_integer(int64_t value, int bits) { return uint64_t(value) ^ (uint64_t(1) << (bits - 1)); }

//: sort_bytes
// A key, and the position that it comes from.
template <class Key>
struct Keyed {
  Key key;
  uint32_t at;
};

// Bytes of memory that sorting a slice needs: two copies of its keys, and counters for every digit.
template <class Key, int64_t bits>
constexpr int64_t sort_bytes(int64_t size) {
  constexpr int64_t digits = (8 * sizeof(Key) + bits - 1) / bits;
  return 2 * size * sizeof(Keyed<Key>) + digits * (int64_t(1) << bits) * sizeof(uint32_t);
}

//: insert_keys
// Sorts a few keys in place; equal ones keep their order.
template <class Key>
inline void insert_keys(Keyed<Key>* keys, int64_t size) {
  for (int64_t i = 1; i < size; ++i) {
    const Keyed<Key> moving = keys[i];
    int64_t j = i;
    for (; j > 0 && keys[j - 1].key > moving.key; --j) keys[j] = keys[j - 1];
    keys[j] = moving;
  }
}

//: sort_keys
// Sorts keys digit by digit, the lowest first; equal ones keep their order. Returns where the sorted keys are: `keys`
// or `other`. `counts` says how often each digit has each value; a digit that is the same everywhere is passed over.
template <class Key, int64_t bits>
inline Keyed<Key>* sort_keys(Keyed<Key>* keys, Keyed<Key>* other, uint32_t* counts, int64_t size) {
  constexpr int64_t digits = (8 * sizeof(Key) + bits - 1) / bits, values = int64_t(1) << bits;
  for (int64_t digit = 0; digit < digits; ++digit, counts += values) {
    const int64_t shift = digit * bits;
    if (counts[(keys[0].key >> shift) & (values - 1)] == size) continue;
    uint32_t next = 0;
    for (int64_t value = 0; value < values; ++value) {
      const uint32_t count = counts[value];
      counts[value] = next;
      next += count;
    }
    for (int64_t i = 0; i < size; ++i) other[counts[(keys[i].key >> shift) & (values - 1)]++] = keys[i];
    Keyed<Key>* const sorted = other;
    other = keys;
    keys = sorted;
  }
  return keys;
}

//: sort_slice
// Writes the first `kept` of `size` sorted elements and their positions; `values` may be null. `order` gives the key of
// an element, `scratch` is memory of `sort_bytes`, steps are those of neighbours in a slice.
template <class Key, int64_t bits, bool descending, int64_t size, int64_t kept, class T, class Order>
inline void sort_slice(const Order& order, void* scratch, const T* from, int64_t from_step, T* values,
                       int64_t values_step, int64_t* places, int64_t places_step) {
  constexpr int64_t digits = (8 * sizeof(Key) + bits - 1) / bits, mask = (int64_t(1) << bits) - 1, few = 32;
  Keyed<Key>* keys = static_cast<Keyed<Key>*>(scratch);
  Keyed<Key>* const other = keys + size;
  uint32_t* const counts = reinterpret_cast<uint32_t*>(other + size);
  if constexpr (size > few) __builtin_memset(counts, 0, digits * (mask + 1) * sizeof(uint32_t));
  for (int64_t i = 0; i < size; ++i) {
    const Key key = descending ? Key(~Key(order(from[i * from_step]))) : Key(order(from[i * from_step]));
    keys[i] = {key, uint32_t(i)};
    if constexpr (size > few) {
      for (int64_t digit = 0; digit < digits; ++digit) ++counts[digit * (mask + 1) + ((key >> (digit * bits)) & mask)];
    }
  }
  if constexpr (size > few) {
    keys = sort_keys<Key, bits>(keys, other, counts, size);
  } else {
    insert_keys(keys, size);
  }
  for (int64_t i = 0; i < kept; ++i) {
    if (values != nullptr) values[i * values_step] = from[keys[i].at * from_step];
    places[i * places_step] = keys[i].at;
  }
}

//: scatter_slice
// Copies `size` elements of `base`, then stores value(i) at the place of each i < count in turn: the last one stays.
template <int64_t size, int64_t count, class T, class Place, class Value>
inline void scatter_slice(T* to, int64_t to_step, const T* base, int64_t base_step, const Place* places,
                          int64_t places_step, const Value& value) {
  for (int64_t i = 0; i < size; ++i) to[i * to_step] = base[i * base_step];
  for (int64_t i = 0; i < count; ++i) to[clamped(places[i * places_step], size) * to_step] = value(i);
}
