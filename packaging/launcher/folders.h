/* Whole folders: removing one, writing one through to the disk, and walking over what one holds. */
#ifndef BEETLE_FOLDERS_H
#define BEETLE_FOLDERS_H

#include <stdbool.h>

/* Remove a folder and all in it; links are removed, not followed, and another file system mounted inside is left. */
bool folder_remove(int parent, const char *name);

/* fsync every file and folder in an open folder, and the folder. False with errno set if one failed. */
bool folder_sync(int folder);

/* Call visit for every name in an open folder but . and .., until one call returns false. False with errno set if the
   folder cannot be listed to its end. */
bool folder_each(int folder, bool (*visit)(int folder, const char *name, void *context), void *context);

#endif
