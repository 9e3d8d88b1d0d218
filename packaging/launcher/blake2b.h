/* BLAKE2b with a 64-byte digest and no key. */
#ifndef BEETLE_BLAKE2B_H
#define BEETLE_BLAKE2B_H

#include <stddef.h>
#include <stdint.h>

#define BLAKE2B_DIGEST 64
#define BLAKE2B_BLOCK 128

struct blake2b {
    uint64_t state[8];
    uint64_t length; /* bytes compressed so far; the 128-bit counter of the RFC, whose upper half no file reaches */
    size_t held;
    uint8_t block[BLAKE2B_BLOCK];
};

void blake2b_begin(struct blake2b *hash);
void blake2b_add(struct blake2b *hash, const void *data, size_t size);
void blake2b_end(struct blake2b *hash, uint8_t digest[BLAKE2B_DIGEST]);

#endif
