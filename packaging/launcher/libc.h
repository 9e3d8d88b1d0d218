/* The system's C library: whether the program can run with it. */
#ifndef BEETLE_LIBC_H
#define BEETLE_LIBC_H

#include <stdbool.h>

#include "problem.h"
#include "self.h"

/* Whether the system has the GNU C library in the version that the program needs, or nobody can tell. False with the
   problem noted if it has none, or an older one. */
bool libc_will_do(const struct self *self, struct problem *problem);

#endif
