/* Removing what nobody needs any more from a place. The caller holds the place's lock. */
#ifndef BEETLE_PRUNE_H
#define BEETLE_PRUNE_H

/* Remove what starts that died have left: whoever holds the lock is alone. */
void prune_left_over(int place);

/* Remove the trees of other versions that no process is using. */
void prune_unused(int place, const char *keep);

#endif
