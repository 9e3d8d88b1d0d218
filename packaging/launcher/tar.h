/* Writes the files of a tar stream below a folder. Takes what packaging/onefile.py writes, and refuses all else. */
#ifndef BEETLE_TAR_H
#define BEETLE_TAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TAR_BLOCK 512
#define TAR_PATH 257 /* a prefix of 155 bytes, a slash, a name of 100, a NUL */

struct tar {
    int root;             /* the folder to write below */
    uint64_t bytes_left;  /* what regular files may still hold, of what the trailer says */
    uint64_t entries_left;
    int folder;           /* the folder of the last entry, -1 if none is open */
    char folder_path[TAR_PATH];
    int file;             /* the file being written, -1 if none */
    uint64_t file_left;   /* its bytes that are still to come */
    uint64_t unflushed;   /* its bytes that the kernel was not yet told to write out */
    size_t padding;       /* bytes of the last block behind it */
    int end_blocks;       /* blocks of zeros seen: two or more end the archive */
    size_t held;          /* bytes of the next block */
    uint8_t block[TAR_BLOCK];
    int error;            /* errno of a call that failed on a file; 0 if the stream itself is to blame */
    const char *why;
};

void tar_begin(struct tar *tar, int root, uint64_t bytes, uint64_t entries);

/* Take the next bytes. False if something is wrong: then error or why says what. */
bool tar_add(struct tar *tar, const uint8_t *data, size_t size);

/* Close what is open. False if the archive is not complete, or is not what the trailer says. */
bool tar_end(struct tar *tar);

#endif
