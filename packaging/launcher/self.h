/* The file that runs: the launcher, the payload behind it, and the trailer that says what is what. */
#ifndef BEETLE_SELF_H
#define BEETLE_SELF_H

#include <stdbool.h>
#include <stdint.h>

#include "blake2b.h"
#include "problem.h"

#define NAME_SIZE 64

struct self {
    int fd;
    char path[1024];         /* for messages only */
    char name[NAME_SIZE];    /* the tree's name, and the name of its folder */
    uint64_t file_size;      /* bytes */
    uint64_t payload_offset; /* bytes from the start of the file */
    uint64_t payload_size;   /* bytes */
    uint64_t unpacked_bytes; /* what the payload's regular files hold together */
    uint64_t entries;        /* folders, files and links in the payload */
    uint8_t digest[BLAKE2B_DIGEST];
};

/* Open the running file and read its trailer. */
bool self_open(struct self *self, struct problem *problem);

/* Whether every byte of the file is as it was packed. Reads the whole file. */
bool self_is_whole(const struct self *self);

/* Note that the file is damaged, and how that shows. */
bool self_damaged(const struct self *self, struct problem *problem, const char *how);

/* Whether a text has the shape of a tree's name: `0.1.0-5f0c3a9be1d2`. */
bool is_tree_name(const char *text);

#endif
