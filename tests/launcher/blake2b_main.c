/* Hashes the first N bytes of its input for each argument N, feeding them in parts of growing size. */
#include <stdio.h>
#include <stdlib.h>

#include "blake2b.h"

int main(int argc, char **argv) {
    static unsigned char data[8 << 20];
    const size_t size = fread(data, 1, sizeof data, stdin);
    for (int i = 1; i < argc; i++) {
        const size_t end = strtoul(argv[i], NULL, 10);
        if (end > size)
            return 1;
        struct blake2b hash;
        blake2b_begin(&hash);
        for (size_t at = 0, part = 0; at < end; at += part) {
            part = part + 1 < end - at ? part + 1 : end - at;
            blake2b_add(&hash, data + at, part);
        }
        unsigned char digest[BLAKE2B_DIGEST];
        blake2b_end(&hash, digest);
        for (size_t byte = 0; byte < sizeof digest; byte++)
            printf("%02x", digest[byte]);
        putchar('\n');
    }
    return 0;
}
