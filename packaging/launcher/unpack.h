/* Unpacking the payload into a place, so that the tree appears under its name complete or not at all. */
#ifndef BEETLE_UNPACK_H
#define BEETLE_UNPACK_H

#include <stdbool.h>

#include "places.h"
#include "problem.h"
#include "self.h"

enum outcome {
    UNPACKED, /* the tree is there, by this process or another */
    REFUSED,  /* the place will not do: another one may */
    BROKEN    /* no place will do: the problem says why */
};

/* Unpack into a place. `lock` becomes the place's lock, or -1; the caller keeps it until the tree is in use, so that
   nobody prunes it before, and closes it. */
enum outcome unpack(const struct self *self, struct place *place, int *lock, struct problem *problem);

#endif
