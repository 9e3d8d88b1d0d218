#include "unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "folders.h"
#include "prune.h"
#include "stop.h"
#include "tar.h"
#include "verify.h"

enum {
    WINDOW_LOG_MAX = 22, /* 4 MiB, the most that packaging/onefile.py uses: it is most of the memory that this needs */
    CHUNK = 256 * 1024,
    TRIES = 100
};

/* Wait for the place's lock. Returns its descriptor, or -1 if this file system or folder gives none: then the rename
   at the end decides who was first. */
static int lock_place(int place) {
    for (;;) {
        const int lock = openat(place, ".lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
        struct stat held, named;
        /* In a shared folder such as /tmp a stranger's lock could be held for ever. */
        if (lock < 0 || fstat(lock, &held) < 0 || !S_ISREG(held.st_mode) ||
            (held.st_uid != 0 && held.st_uid != geteuid())) {
            if (lock >= 0)
                close(lock);
            return -1;
        }
        int result;
        do
            result = flock(lock, LOCK_EX);
        while (result < 0 && errno == EINTR);
        if (result < 0) {
            close(lock);
            return -1;
        }
        /* While this waited, somebody may have emptied the cache, and others lock another file. */
        if (fstatat(place, ".lock", &named, AT_SYMLINK_NOFOLLOW) == 0 && named.st_ino == held.st_ino)
            return lock;
        close(lock);
    }
}

/* Make an own folder to unpack into. A process id is not enough of a name: it comes again, and containers share places. */
static int make_folder(int place, char *name, size_t size) {
    for (int i = 0; i < TRIES; i++) {
        snprintf(name, size, i == 0 ? ".unpack-%ld" : ".unpack-%ld-%d", (long)getpid(), i);
        if (mkdirat(place, name, 0700) == 0)
            return openat(place, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (errno != EEXIST)
            break;
    }
    return -1;
}

struct stream {
    const struct self *self;
    uint64_t at; /* bytes of the payload read so far */
    ZSTD_DCtx *zstd;
    struct tar tar;
    uint8_t in[CHUNK], out[CHUNK];
};

/* Read the next chunk of the payload. Returns its size; 0 at the end; -1 with errno set. */
static ssize_t stream_read(struct stream *stream) {
    const uint64_t rest = stream->self->payload_size - stream->at;
    const size_t size = rest < CHUNK ? (size_t)rest : CHUNK;
    ssize_t got;
    do
        got = pread(stream->self->fd, stream->in, size, (off_t)(stream->self->payload_offset + stream->at));
    while (got < 0 && errno == EINTR);
    stream->at += got > 0 ? (uint64_t)got : 0;
    return got;
}

/* A call on the place's files failed: the place is to blame. */
static enum outcome blame_place(struct place *place, int error) {
    const int code = problem_code_of(error);
    place_refuse(place, code == CODE_OTHER ? CODE_CANNOT_EXECUTE : code, "%s", strerror(error));
    return REFUSED;
}

static enum outcome blame_payload(const struct self *self, struct problem *problem, const char *why) {
    char how[128];
    snprintf(how, sizeof how, "in its payload: %s", why);
    self_damaged(self, problem, how);
    return BROKEN;
}

/* Decompress the payload into files. */
static enum outcome stream_run(struct stream *stream, struct place *place, struct problem *problem) {
    size_t hint = 1; /* what zstd says about the frame: 0 when it is complete */
    ssize_t got;
    while ((got = stream_read(stream)) > 0) {
        ZSTD_inBuffer in = {stream->in, (size_t)got, 0};
        ZSTD_outBuffer out;
        do {
            if (stop_asked())
                return BROKEN;
            if (hint == 0)
                return blame_payload(stream->self, problem, "something follows its end");
            out = (ZSTD_outBuffer){stream->out, CHUNK, 0};
            hint = ZSTD_decompressStream(stream->zstd, &out, &in);
            if (ZSTD_isError(hint))
                return blame_payload(stream->self, problem, ZSTD_getErrorName(hint));
            if (!tar_add(&stream->tar, stream->out, out.pos))
                return stream->tar.error != 0 ? blame_place(place, stream->tar.error)
                                              : blame_payload(stream->self, problem, stream->tar.why);
        } while (in.pos < in.size || (hint != 0 && out.pos == out.size));
    }
    if (got < 0) {
        problem_note(problem, CODE_OTHER, "cannot read its own file: %s: %s", stream->self->path, strerror(errno));
        return BROKEN;
    }
    return hint == 0 ? UNPACKED : blame_payload(stream->self, problem, "it ends too soon");
}

static enum outcome unpack_payload(const struct self *self, struct place *place, int folder, struct problem *problem) {
    struct stream *stream = malloc(sizeof *stream);
    ZSTD_DCtx *zstd = ZSTD_createDCtx();
    enum outcome outcome = BROKEN;
    if (stream == NULL || zstd == NULL ||
        ZSTD_isError(ZSTD_DCtx_setParameter(zstd, ZSTD_d_windowLogMax, WINDOW_LOG_MAX))) {
        problem_note(problem, CODE_OTHER, "cannot unpack: %s", strerror(ENOMEM));
    } else {
        stream->self = self;
        stream->at = 0;
        stream->zstd = zstd;
        tar_begin(&stream->tar, folder, self->unpacked_bytes, self->entries);
        outcome = stream_run(stream, place, problem);
        if (!tar_end(&stream->tar) && outcome == UNPACKED)
            outcome = blame_payload(self, problem, stream->tar.why);
    }
    ZSTD_freeDCtx(zstd);
    free(stream);
    return outcome;
}

/* Give the finished folder its name, once its bytes are known to be right and on the disk. */
static enum outcome finish(const struct self *self, struct place *place, int place_fd, int folder, const char *name) {
    if (fchmod(folder, 0755) < 0 || !folder_sync(folder))
        return blame_place(place, errno);
    if (stop_asked())
        return BROKEN;
    if (renameat(place_fd, name, place_fd, self->name) < 0) {
        if (errno != EEXIST && errno != ENOTEMPTY)
            return blame_place(place, errno);
        /* Without a lock another start was faster: its tree is the same. */
        folder_remove(place_fd, name);
    }
    /* Should this fail, a power cut may cost the name, and the next start unpacks again. */
    fsync(place_fd);
    return UNPACKED;
}

static enum outcome unpack_new(const struct self *self, struct place *place, int place_fd, int lock,
                               struct problem *problem) {
    if (!place_has_room(place, place_fd, self))
        return REFUSED;
    char name[64];
    const int folder = make_folder(place_fd, name, sizeof name);
    if (folder < 0)
        return blame_place(place, errno);
    struct verify verify;
    verify_begin(&verify, self, lock);
    enum outcome outcome = unpack_payload(self, place, folder, problem);
    if (stop_asked())
        verify_abandon(&verify);
    else if (!verify_end(&verify)) {
        /* Whatever went wrong, or did not: a changed byte is the cause, and must be the answer. */
        *problem = (struct problem){0};
        self_damaged(self, problem, "its bytes are not those that were packed");
        outcome = BROKEN;
    }
    if (outcome == UNPACKED)
        outcome = finish(self, place, place_fd, folder, name);
    close(folder);
    if (outcome != UNPACKED)
        folder_remove(place_fd, name);
    return outcome;
}

enum outcome unpack(const struct self *self, struct place *place, int *lock, struct problem *problem) {
    *lock = -1;
    const int place_fd = place_open(place);
    if (place_fd < 0)
        return REFUSED;
    *lock = lock_place(place_fd);
    struct stat about;
    enum outcome outcome = UNPACKED;
    stop_hold();
    if (fstatat(place_fd, self->name, &about, AT_SYMLINK_NOFOLLOW) < 0) {
        if (*lock >= 0) {
            prune_left_over(place_fd);
            prune_unused(place_fd);
        }
        outcome = unpack_new(self, place, place_fd, *lock, problem);
    }
    stop_release();
    close(place_fd);
    return outcome;
}
