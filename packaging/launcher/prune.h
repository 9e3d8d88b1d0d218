/* Removing what nobody needs any more from a place. The caller holds the place's lock. */
#ifndef BEETLE_PRUNE_H
#define BEETLE_PRUNE_H

/* Remove what starts that died have left: whoever holds the lock is alone. */
void prune_left_over(int place);

/* Make room for one more tree: of those that are there, remove what no process is using, but for the one that was unpacked
   last. So a place holds two trees, and what runs. */
void prune_unused(int place);

#endif
