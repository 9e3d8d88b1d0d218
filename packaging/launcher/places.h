/* The folders that may hold unpacked trees, whom to trust there, and how one is opened to unpack into it. */
#ifndef BEETLE_PLACES_H
#define BEETLE_PLACES_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "problem.h"
#include "self.h"

enum { PLACES = 4, ALL_FOLDERS = 1000 };

struct place {
    char path[PATH_MAX]; /* the folder that holds trees; empty if it is not known */
    int may_make;        /* how many missing folders at the end of the path may be made; -1: nothing is unpacked here */
    mode_t mode;         /* of a folder that is made */
    int code;            /* the exit code if this place is to blame; 0 while nothing speaks against it */
    char why[256];       /* what speaks against it */
};

/* Fill in the places, in the order of preference. Returns how many there are. */
int places_list(struct place places[PLACES]);

/* Note what speaks against a place; the first note stays. */
void place_refuse(struct place *place, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* A complete tree: its folder and the place's, open only to look things up below them. */
struct tree {
    int place;
    int folder;
};

/* Look for the tree of this name. False if it is not there, or if what is there is not to be trusted: then the place is
   refused as well. */
bool place_find(struct place *place, const char *name, struct tree *tree);
void tree_close(struct tree *tree);

/* Whether the tree still stands under its name: nobody has removed it since it was found. */
bool tree_stands(const struct tree *tree, const char *name);

/* Open the place's folder for unpacking, making it first if need be. Returns a descriptor, or -1: the place is refused.
*/
int place_open(struct place *place);

/* Whether the file system of an open place has room for the tree; if not, the place is refused. */
bool place_has_room(struct place *place, int fd, const struct self *self);

/* Note that no place would do, naming each and why. */
bool places_exhausted(const struct place *places, int count, uint64_t bytes, struct problem *problem);

#endif
