#include "prune.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "folders.h"
#include "self.h"
#include "stop.h"

static const char UNPACKING[] = ".unpack-", PRUNING[] = ".prune-";

/* `.unpack-1234`, `.unpack-1234-5` and `.prune-` before a tree's name, nothing else. */
static bool is_own_folder_name(const char *name) {
    if (strncmp(name, PRUNING, sizeof PRUNING - 1) == 0)
        return is_tree_name(name + sizeof PRUNING - 1);
    if (strncmp(name, UNPACKING, sizeof UNPACKING - 1) != 0)
        return false;
    const char *number = name + sizeof UNPACKING - 1;
    return *number >= '0' && *number <= '9' && number[strspn(number, "0123456789-")] == '\0';
}

/* A folder of this user's: in a shared place the others' are theirs to remove, and their locks are others. */
static bool is_own_folder(int place, const char *name) {
    struct stat about;
    return fstatat(place, name, &about, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(about.st_mode) &&
           about.st_uid == geteuid();
}

static bool remove_left_over(int place, const char *name, void *context) {
    (void)context;
    if (is_own_folder_name(name) && is_own_folder(place, name))
        folder_remove(place, name);
    return !stop_asked();
}

void prune_left_over(int place) {
    folder_each(place, remove_left_over, NULL);
}

struct newest {
    char name[NAME_SIZE];
    struct timespec unpacked;
};

static bool find_newest(int place, const char *name, void *context) {
    struct newest *newest = context;
    char use[NAME_SIZE + sizeof "/in-use"];
    struct stat about;
    if (!is_tree_name(name) || !is_own_folder(place, name))
        return !stop_asked();
    snprintf(use, sizeof use, "%s/in-use", name);
    if (fstatat(place, use, &about, AT_SYMLINK_NOFOLLOW) < 0)
        return !stop_asked();
    const struct timespec before = newest->unpacked, made = about.st_mtim;
    if (newest->name[0] == '\0' || made.tv_sec > before.tv_sec ||
        (made.tv_sec == before.tv_sec && made.tv_nsec > before.tv_nsec)) {
        snprintf(newest->name, sizeof newest->name, "%s", name);
        newest->unpacked = made;
    }
    return !stop_asked();
}

static bool remove_unused(int place, const char *name, void *context) {
    const char *keep = context;
    if (!is_tree_name(name) || strcmp(name, keep) == 0 || !is_own_folder(place, name))
        return !stop_asked();
    const int tree = openat(place, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    const int use = tree < 0 ? -1 : openat(tree, "in-use", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    char removing[sizeof PRUNING + NAME_SIZE];
    snprintf(removing, sizeof removing, "%s%s", PRUNING, name);
    /* Renamed while locked: a start that gets the lock afterwards sees that its tree no longer stands. */
    if (use >= 0 && flock(use, LOCK_EX | LOCK_NB) == 0 && renameat(place, name, place, removing) == 0)
        folder_remove(place, removing);
    if (use >= 0)
        close(use);
    if (tree >= 0)
        close(tree);
    return !stop_asked();
}

void prune_unused(int place) {
    struct newest newest = {0};
    if (folder_each(place, find_newest, &newest))
        folder_each(place, remove_unused, newest.name);
}
