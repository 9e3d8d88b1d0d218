#include "places.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static const uint64_t MARGIN = 4 << 20; /* bytes that stay free: folders and the file system's own records */
static const uint64_t MARGIN_INODES = 16;

void place_refuse(struct place *place, int code, const char *format, ...) {
    if (place->code != 0)
        return;
    va_list values;
    va_start(values, format);
    vsnprintf(place->why, sizeof place->why, format, values);
    va_end(values);
    place->code = code;
}

static void add(struct place *place, const char *folder, const char *below, int may_make, mode_t mode) {
    memset(place, 0, sizeof *place);
    place->may_make = may_make;
    place->mode = mode;
    const int length = snprintf(place->path, sizeof place->path, "%s%s", folder, below);
    if (length < 0 || (size_t)length >= sizeof place->path - NAME_SIZE - sizeof "//beetle")
        place_refuse(place, CODE_CANNOT_EXECUTE, "the name is too long");
}

/* The value of a variable that names a folder, or NULL. A relative one depends on where the user happens to be, so it
   counts as not set, as the XDG rules have it. secure_getenv: a set-user-ID copy must not believe its caller. */
static const char *folder_of(const char *variable) {
    const char *value = secure_getenv(variable);
    return value != NULL && value[0] == '/' ? value : NULL;
}

int places_list(struct place places[PLACES]) {
    const mode_t shared = geteuid() == 0 ? 0755 : 0700;
    const char *named = secure_getenv("BEETLE_CACHE");
    if (named != NULL && named[0] != '\0') {
        add(&places[0], named, "", ALL_FOLDERS, shared);
        if (named[0] != '/')
            place_refuse(&places[0], CODE_CANNOT_EXECUTE, "BEETLE_CACHE must be an absolute path");
        return 1;
    }
    int count = 0;
    const char *home = folder_of("HOME"), *cache = folder_of("XDG_CACHE_HOME");
    if (home != NULL)
        add(&places[count++], home, "/.local/lib/beetle/versions", -1, 0);
    add(&places[count++], "/opt/beetle/versions", "", -1, 0);
    if (cache != NULL)
        add(&places[count++], cache, "/beetle", 2, 0700);
    else if (home != NULL)
        add(&places[count++], home, "/.cache/beetle", 2, 0700);
    else {
        add(&places[count], "$HOME/.cache/beetle", "", 0, 0);
        place_refuse(&places[count++], CODE_CANNOT_EXECUTE, "HOME is not set");
    }
    add(&places[count++], "/var/cache/beetle", "", 1, shared);
    return count;
}

/* Whoever may change what is below a folder decides what runs. A sticky folder such as /tmp lets everybody add names,
   but nobody touch those of others, which is enough for a place though not for a tree. */
static bool trusted(struct place *place, int fd, const char *what, bool sticky_will_do) {
    struct stat about;
    if (fstat(fd, &about) < 0) {
        place_refuse(place, problem_code_of(errno), "%s", strerror(errno));
        return false;
    }
    if (about.st_uid != 0 && about.st_uid != geteuid()) {
        place_refuse(place, CODE_CANNOT_EXECUTE, "%s belongs to another user (uid %u)", what, (unsigned)about.st_uid);
        return false;
    }
    if ((about.st_mode & 022) != 0 && !(sticky_will_do && (about.st_mode & S_ISVTX) != 0)) {
        place_refuse(place, CODE_CANNOT_EXECUTE, "others may write into %s (mode %03o)", what,
                     (unsigned)about.st_mode & 0777);
        return false;
    }
    return true;
}

bool place_find(struct place *place, const char *name, struct tree *tree) {
    tree->folder = -1;
    tree->place = place->code != 0 ? -1 : open(place->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (tree->place < 0)
        return false;
    tree->folder = openat(tree->place, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (tree->folder < 0) {
        if (errno != ENOENT)
            place_refuse(place, CODE_CANNOT_EXECUTE, "%s in it: %s", name, strerror(errno));
    } else if (trusted(place, tree->place, "it", true) && trusted(place, tree->folder, name, false)) {
        return true;
    }
    tree_close(tree);
    return false;
}

void tree_close(struct tree *tree) {
    if (tree->folder >= 0)
        close(tree->folder);
    if (tree->place >= 0)
        close(tree->place);
    tree->folder = tree->place = -1;
}

bool tree_stands(const struct tree *tree, const char *name) {
    struct stat found, named;
    return fstat(tree->folder, &found) == 0 && fstatat(tree->place, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           found.st_dev == named.st_dev && found.st_ino == named.st_ino;
}

/* Whether programs may run from the file system of an open folder. Asked before anything is made on it. */
static bool may_execute(struct place *place, int fd) {
    struct statvfs about;
    if (fstatvfs(fd, &about) == 0 && (about.f_flag & ST_NOEXEC) != 0)
        place_refuse(place, CODE_CANNOT_EXECUTE, "mounted noexec");
    return place->code == 0;
}

/* Open the deepest folder of the path that is there. Returns its descriptor and where in the path the rest begins. */
static int open_deepest(const struct place *place, size_t *rest) {
    char path[PATH_MAX];
    memcpy(path, place->path, sizeof path);
    size_t length = strlen(path);
    for (int missing = 0;; missing++) {
        while (length > 1 && path[length - 1] == '/')
            path[--length] = '\0';
        const int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        *rest = length;
        if (fd >= 0 || errno != ENOENT || missing == place->may_make || length == 1)
            return fd;
        while (length > 1 && path[length - 1] != '/')
            path[--length] = '\0';
    }
}

/* Make the folders of the path that are missing below fd, one by one. Closes fd, returns the last one's descriptor. */
static int make_rest(const struct place *place, int fd, size_t rest) {
    char path[PATH_MAX], *state = NULL;
    memcpy(path, place->path + rest, strlen(place->path + rest) + 1);
    for (char *part = strtok_r(path, "/", &state); part != NULL; part = strtok_r(NULL, "/", &state)) {
        /* Another start may make it at the same time. */
        const bool made = mkdirat(fd, part, place->mode) == 0 || errno == EEXIST;
        const int next = made ? openat(fd, part, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
        const int error = errno;
        close(fd);
        errno = error;
        if (next < 0)
            return -1;
        fd = next;
    }
    const int folder = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int error = errno;
    close(fd);
    errno = error;
    return folder;
}

int place_open(struct place *place) {
    size_t rest;
    int fd = open_deepest(place, &rest);
    if (fd >= 0 && !may_execute(place, fd)) {
        close(fd);
        return -1;
    }
    if (fd >= 0) {
        const mode_t before = umask(0);
        fd = make_rest(place, fd, rest);
        umask(before);
    }
    if (fd < 0) {
        const int code = problem_code_of(errno);
        place_refuse(place, code == CODE_OTHER ? CODE_CANNOT_EXECUTE : code, "%s", strerror(errno));
        return -1;
    }
    if (may_execute(place, fd) && trusted(place, fd, "it", true))
        return fd;
    close(fd);
    return -1;
}

bool place_has_room(struct place *place, int fd, const struct self *self) {
    struct statvfs about;
    if (fstatvfs(fd, &about) < 0 || about.f_blocks == 0 || about.f_frsize == 0)
        return true; /* a file system that does not tell: writing will */
    const uint64_t free_bytes = (uint64_t)about.f_bavail * about.f_frsize;
    uint64_t needed;
    /* Each entry's last block is half empty on average; a whole one is counted. */
    if (__builtin_mul_overflow(self->entries, (uint64_t)about.f_frsize, &needed) ||
        __builtin_add_overflow(needed, self->unpacked_bytes, &needed) ||
        __builtin_add_overflow(needed, MARGIN, &needed))
        needed = UINT64_MAX;
    if (free_bytes < needed) {
        place_refuse(place, CODE_STORAGE, "%llu MiB needed, %llu MiB free", (unsigned long long)(needed >> 20) + 1,
                     (unsigned long long)free_bytes >> 20);
    } else if (about.f_files != 0 && about.f_favail < MARGIN_INODES + self->entries) {
        place_refuse(place, CODE_STORAGE, "%llu inodes needed, %llu free",
                     (unsigned long long)(MARGIN_INODES + self->entries), (unsigned long long)about.f_favail);
    }
    return place->code == 0;
}

bool places_exhausted(const struct place *places, int count, uint64_t bytes, struct problem *problem) {
    char list[2048] = "";
    size_t length = 0;
    int code = CODE_CANNOT_EXECUTE;
    for (int i = 0; i < count && length < sizeof list; i++) {
        /* A prefix that merely holds no tree is not worth a word. */
        if (places[i].code == 0)
            continue;
        /* Room can be made, and then it runs: that is the better news. */
        if (places[i].code == CODE_STORAGE)
            code = CODE_STORAGE;
        const int more = snprintf(list + length, sizeof list - length, "%s%s: %s", length > 0 ? "; " : "",
                                  places[i].path, places[i].why);
        length += more > 0 ? (size_t)more : 0;
    }
    if (code == CODE_STORAGE) {
        problem_note(problem, code, "no storage to unpack into: %s", list);
        problem_hint(problem, "set BEETLE_CACHE to a folder with %llu MiB of room, from which programs may run",
                     (unsigned long long)((bytes + MARGIN) >> 20) + 1);
    } else {
        problem_note(problem, code, "no place to run from: %s", list);
        problem_hint(problem, "set BEETLE_CACHE to a folder that only you can write to and from which programs may run");
    }
    return false;
}
