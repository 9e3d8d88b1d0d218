#include "folders.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    DEEPEST = 64, /* folders inside each other; each holds a descriptor while it is walked */
    PASSES = 4    /* some file systems leave names out of a listing while others are removed */
};

bool folder_each(int folder, bool (*visit)(int folder, const char *name, void *context), void *context) {
    /* A descriptor of its own: closedir() closes it, and the caller's keeps its position. */
    const int own = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = own < 0 ? NULL : fdopendir(own);
    if (listing == NULL) {
        if (own >= 0)
            close(own);
        return false;
    }
    int error = 0;
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(listing);
        if (entry == NULL) {
            error = errno;
            break;
        }
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            !visit(folder, entry->d_name, context))
            break;
    }
    closedir(listing);
    errno = error;
    return error == 0;
}

struct removal {
    dev_t device;
    int depth;
};

static bool remove_one(int folder, const char *name, void *context);

static bool remove_inside(int folder, const char *name, const struct removal *above) {
    const int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return false;
    struct stat about;
    struct removal here = {above->device, above->depth + 1};
    bool gone = false;
    if (fstat(fd, &about) == 0 && about.st_dev == above->device && here.depth < DEEPEST) {
        for (int pass = 0; pass < PASSES && !gone; pass++) {
            folder_each(fd, remove_one, &here);
            gone = unlinkat(folder, name, AT_REMOVEDIR) == 0;
        }
    }
    close(fd);
    return gone;
}

static bool remove_one(int folder, const char *name, void *context) {
    if (unlinkat(folder, name, 0) < 0 && (errno == EISDIR || errno == EPERM))
        remove_inside(folder, name, context);
    return true;
}

bool folder_remove(int parent, const char *name) {
    struct stat about;
    if (fstat(parent, &about) < 0)
        return false;
    const struct removal top = {about.st_dev, 0};
    return remove_inside(parent, name, &top);
}

static bool sync_inside(int folder, int depth, int *error);

struct syncing {
    int depth;
    int error;
};

static bool sync_one(int folder, const char *name, void *context) {
    struct syncing *here = context;
    const int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        if (errno != ELOOP) /* a symbolic link is written with its folder */
            here->error = errno;
        return here->error == 0;
    }
    struct stat about;
    if (fstat(fd, &about) < 0)
        here->error = errno;
    else if (S_ISDIR(about.st_mode))
        sync_inside(fd, here->depth + 1, &here->error);
    else if (fsync(fd) < 0)
        here->error = errno;
    close(fd);
    return here->error == 0;
}

static bool sync_inside(int folder, int depth, int *error) {
    struct syncing here = {depth, 0};
    if (depth >= DEEPEST)
        here.error = ELOOP;
    else if (!folder_each(folder, sync_one, &here) || (here.error == 0 && fsync(folder) < 0))
        here.error = errno;
    *error = here.error;
    return here.error == 0;
}

bool folder_sync(int folder) {
    int error;
    if (sync_inside(folder, 0, &error))
        return true;
    errno = error;
    return false;
}
