/* BLAKE2b after RFC 7693: section 2.6 (vector), 2.7 (message schedule), 3.1 (mixing), 3.2 (compression), 3.3 (padding). */
#include "blake2b.h"

#include <string.h>

static const uint64_t VECTOR[8] = {
    0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
    0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179,
};

static uint64_t little64(const uint8_t *bytes) {
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--)
        value = value << 8 | bytes[i];
    return value;
}

#define ROTATE(x, n) ((x) >> (n) | (x) << (64 - (n)))

#define MIX(a, b, c, d, x, y)                                                                                          \
    (v[a] += v[b] + m[x], v[d] = ROTATE(v[d] ^ v[a], 32), v[c] += v[d], v[b] = ROTATE(v[b] ^ v[c], 24),                \
     v[a] += v[b] + m[y], v[d] = ROTATE(v[d] ^ v[a], 16), v[c] += v[d], v[b] = ROTATE(v[b] ^ v[c], 63))

/* The schedule is written out, not a table: with constant indexes the compiler sees every operand, even under -Os. */
#define ROUND(s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15)                                    \
    (MIX(0, 4, 8, 12, s0, s1), MIX(1, 5, 9, 13, s2, s3), MIX(2, 6, 10, 14, s4, s5), MIX(3, 7, 11, 15, s6, s7),         \
     MIX(0, 5, 10, 15, s8, s9), MIX(1, 6, 11, 12, s10, s11), MIX(2, 7, 8, 13, s12, s13), MIX(3, 4, 9, 14, s14, s15))

static void compress(struct blake2b *hash, const uint8_t *block, int last) {
    uint64_t v[16], m[16];
    for (int i = 0; i < 16; i++)
        m[i] = little64(block + 8 * i);
    memcpy(v, hash->state, sizeof hash->state);
    memcpy(v + 8, VECTOR, sizeof VECTOR);
    v[12] ^= hash->length;
    if (last)
        v[14] = ~v[14];
    ROUND(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    ROUND(14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3);
    ROUND(11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4);
    ROUND(7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8);
    ROUND(9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13);
    ROUND(2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9);
    ROUND(12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11);
    ROUND(13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10);
    ROUND(6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5);
    ROUND(10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0);
    ROUND(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    ROUND(14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3);
    for (int i = 0; i < 8; i++)
        hash->state[i] ^= v[i] ^ v[i + 8];
}

void blake2b_begin(struct blake2b *hash) {
    memset(hash, 0, sizeof *hash);
    memcpy(hash->state, VECTOR, sizeof VECTOR);
    hash->state[0] ^= 0x01010000 ^ BLAKE2B_DIGEST; /* the parameter block: fanout 1, depth 1, no key, digest length */
}

void blake2b_add(struct blake2b *hash, const void *data, size_t size) {
    const uint8_t *next = data;
    while (size > 0) {
        /* A full block waits until more follows: only then is it known not to be the last one. */
        if (hash->held == BLAKE2B_BLOCK) {
            hash->length += BLAKE2B_BLOCK;
            compress(hash, hash->block, 0);
            hash->held = 0;
        }
        if (hash->held == 0 && size > BLAKE2B_BLOCK) {
            hash->length += BLAKE2B_BLOCK;
            compress(hash, next, 0);
            next += BLAKE2B_BLOCK;
            size -= BLAKE2B_BLOCK;
            continue;
        }
        size_t room = BLAKE2B_BLOCK - hash->held;
        size_t part = size < room ? size : room;
        memcpy(hash->block + hash->held, next, part);
        hash->held += part;
        next += part;
        size -= part;
    }
}

void blake2b_end(struct blake2b *hash, uint8_t digest[BLAKE2B_DIGEST]) {
    hash->length += hash->held;
    memset(hash->block + hash->held, 0, BLAKE2B_BLOCK - hash->held);
    compress(hash, hash->block, 1);
    for (int i = 0; i < BLAKE2B_DIGEST; i++)
        digest[i] = (uint8_t)(hash->state[i / 8] >> 8 * (i % 8));
}
