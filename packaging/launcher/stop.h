/* Signals that ask to stop, held back while a half-made tree is on the disk, and the umask and SIGXFSZ of that time. */
#ifndef BEETLE_STOP_H
#define BEETLE_STOP_H

#include <stdbool.h>

/* From now on a stop only sets a flag, files get exactly the modes that are asked for, and too large a file is an error.
   Nothing that can wait for long may come before stop_release(): a stop in the moment before it would wait as well. */
void stop_hold(void);

/* Whether a stop was asked for since. */
bool stop_asked(void);

/* Undo stop_hold(), and die by the signal if one came. */
void stop_release(void);

#endif
