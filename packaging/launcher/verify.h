/* Hashing the file beside the unpacking, in a child process. */
#ifndef BEETLE_VERIFY_H
#define BEETLE_VERIFY_H

#include <stdbool.h>
#include <sys/types.h>

#include "self.h"

struct verify {
    const struct self *self;
    pid_t child; /* -1: none could be started */
    int verdict; /* the pipe that the child answers into */
};

/* Start. `lock` is closed in the child, which must not outlive its parent with it. */
void verify_begin(struct verify *verify, const struct self *self, int lock);

/* Wait for the answer: whether every byte of the file is as it was packed. */
bool verify_end(struct verify *verify);

/* Do without the answer. */
void verify_abandon(struct verify *verify);

#endif
