#include "tar.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The fields of a ustar header (POSIX.1-1988) that are read. */
enum {
    AT_NAME = 0,
    NAME_SIZE = 100,
    AT_MODE = 100,
    MODE_SIZE = 8,
    AT_SIZE = 124,
    SIZE_SIZE = 12,
    AT_CHECKSUM = 148,
    CHECKSUM_SIZE = 8,
    AT_TYPE = 156,
    AT_LINK = 157,
    LINK_SIZE = 100,
    AT_MAGIC = 257,
    MAGIC_SIZE = 8,
    AT_PREFIX = 345,
    PREFIX_SIZE = 155,
    RECORD = 20, /* blocks: behind the two that end it an archive is filled up with zeros to a multiple of it */
    DEEPEST = 32 /* folders inside each other; packaging/onefile.py knows it too */
};

/* Writing begins while the rest is still being unpacked, so that the fsync at the end finds little left to do. */
static const uint64_t FLUSH_EVERY = 4 << 20;

static bool refuse(struct tar *tar, const char *why) {
    tar->why = why;
    return false;
}

static bool failed(struct tar *tar) {
    if (errno == EEXIST || errno == ENOTDIR || errno == ELOOP)
        return refuse(tar, "two entries contradict each other");
    tar->error = errno;
    return false;
}

void tar_begin(struct tar *tar, int root, uint64_t bytes, uint64_t entries) {
    memset(tar, 0, sizeof *tar);
    tar->root = root;
    tar->bytes_left = bytes;
    tar->entries_left = entries;
    tar->folder = tar->file = -1;
}

/* A number in octal digits, ended by NULs or spaces or the end of the field. */
static bool octal(const uint8_t *field, size_t size, uint64_t *value) {
    size_t i = 0;
    *value = 0;
    for (; i < size && field[i] >= '0' && field[i] <= '7'; i++)
        *value = *value * 8 + (uint64_t)(field[i] - '0');
    const size_t digits = i;
    while (i < size && (field[i] == '\0' || field[i] == ' '))
        i++;
    return digits > 0 && i == size;
}

static bool checksum_fits(const uint8_t *header) {
    uint64_t said, sum = 0;
    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += i >= AT_CHECKSUM && i < AT_CHECKSUM + CHECKSUM_SIZE ? ' ' : header[i];
    return octal(header + AT_CHECKSUM, CHECKSUM_SIZE, &said) && said == sum;
}

/* The next part of a path: its start and length; false at the end. */
static bool next_part(const char **path, const char **part, size_t *length) {
    if (**path == '\0')
        return false;
    *part = *path;
    *length = strcspn(*path, "/");
    *path += *length + ((*path)[*length] == '/');
    return true;
}

static bool is(const char *part, size_t length, const char *text) {
    return strlen(text) == length && memcmp(part, text, length) == 0;
}

/* Whether a path stays inside: relative, every part a plain name. */
static bool stays_inside(const char *path) {
    const char *part;
    size_t length;
    int parts = 0;
    if (*path == '\0' || path[strlen(path) - 1] == '/')
        return false;
    while (next_part(&path, &part, &length)) {
        if (length == 0 || is(part, length, ".") || is(part, length, "..") || ++parts > DEEPEST)
            return false;
        for (size_t i = 0; i < length; i++)
            if ((unsigned char)part[i] < ' ')
                return false;
    }
    return true;
}

/* Whether a link's target stays inside. `..` may stand only at its start: there it climbs the real folders above the
   link, while after a name it would climb from wherever another link leads. */
static bool target_stays_inside(const char *link, const char *target) {
    int above = 0;
    for (const char *c = link; *c != '\0'; c++)
        above += *c == '/';
    while (strncmp(target, "../", 3) == 0 && above-- > 0)
        target += 3;
    return stays_inside(target);
}

/* Open the folder that an entry lies in, one real folder after the other. */
static bool open_folder(struct tar *tar, const char *path, size_t length) {
    if (tar->folder >= 0 && is(path, length, tar->folder_path))
        return true;
    if (tar->folder >= 0)
        close(tar->folder);
    memcpy(tar->folder_path, path, length);
    tar->folder_path[length] = '\0';
    tar->folder = openat(tar->root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    const char *rest = tar->folder_path, *part;
    size_t size;
    while (tar->folder >= 0 && next_part(&rest, &part, &size)) {
        char name[TAR_PATH];
        memcpy(name, part, size);
        name[size] = '\0';
        const int next = openat(tar->folder, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        const int error = errno;
        close(tar->folder);
        errno = error;
        tar->folder = next;
    }
    return tar->folder >= 0 || failed(tar);
}

static bool file_finish(struct tar *tar) {
    /* An early start, not a promise: that is the fsync's. A file system without it refuses, and loses nothing. */
    sync_file_range(tar->file, 0, 0, SYNC_FILE_RANGE_WRITE);
    const int result = close(tar->file);
    tar->file = -1;
    return result == 0 || failed(tar);
}

static bool file_begin(struct tar *tar, const char *name, uint64_t mode, uint64_t size) {
    if (mode != 0644 && mode != 0755)
        return refuse(tar, "a file's mode is neither 644 nor 755");
    if (size > tar->bytes_left)
        return refuse(tar, "it holds more bytes than the trailer says");
    tar->bytes_left -= size;
    tar->file = openat(tar->folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, (mode_t)mode);
    if (tar->file < 0)
        return failed(tar);
    tar->file_left = size;
    tar->unflushed = 0;
    tar->padding = (TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK;
    return size > 0 || file_finish(tar);
}

static bool entry_make(struct tar *tar, char *path, const char *target, const uint8_t *header) {
    uint64_t mode, size;
    if (!octal(header + AT_MODE, MODE_SIZE, &mode) || !octal(header + AT_SIZE, SIZE_SIZE, &size))
        return refuse(tar, "a number in a header is not octal");
    const char type = (char)header[AT_TYPE];
    const size_t length = strlen(path);
    if (type == '5' && length > 1 && path[length - 1] == '/')
        path[length - 1] = '\0';
    if (!stays_inside(path))
        return refuse(tar, "a name leaves the tree");
    if (type != '0' && size != 0)
        return refuse(tar, "a folder or link has contents");
    const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
    if (!open_folder(tar, path, slash == NULL ? 0 : (size_t)(slash - path)))
        return false;
    switch (type) {
    case '0':
        return file_begin(tar, name, mode, size);
    case '5':
        return mode != 0755 ? refuse(tar, "a folder's mode is not 755")
                            : mkdirat(tar->folder, name, 0755) == 0 || failed(tar);
    case '2':
        return !target_stays_inside(path, target) ? refuse(tar, "a link leaves the tree")
                                                  : symlinkat(target, tar->folder, name) == 0 || failed(tar);
    default:
        return refuse(tar, "an entry is neither file, folder nor symbolic link");
    }
}

static bool header_take(struct tar *tar) {
    static const uint8_t zeros[TAR_BLOCK];
    const uint8_t *header = tar->block;
    if (memcmp(header, zeros, TAR_BLOCK) == 0) {
        return ++tar->end_blocks <= RECORD + 1 || refuse(tar, "something follows its end");
    }
    if (tar->end_blocks > 0)
        return refuse(tar, "something follows its end");
    if (memcmp(header + AT_MAGIC, "ustar\00000", MAGIC_SIZE) != 0 || !checksum_fits(header))
        return refuse(tar, "a header is none of ustar's");
    if (tar->entries_left-- == 0)
        return refuse(tar, "it holds more entries than the trailer says");
    char path[TAR_PATH], target[LINK_SIZE + 1];
    const size_t prefix = strnlen((const char *)header + AT_PREFIX, PREFIX_SIZE);
    const size_t name = strnlen((const char *)header + AT_NAME, NAME_SIZE);
    const size_t slash = prefix > 0;
    const size_t link = strnlen((const char *)header + AT_LINK, LINK_SIZE);
    memcpy(path, header + AT_PREFIX, prefix);
    if (slash)
        path[prefix] = '/';
    memcpy(path + prefix + slash, header + AT_NAME, name);
    path[prefix + slash + name] = '\0';
    memcpy(target, header + AT_LINK, link);
    target[link] = '\0';
    return entry_make(tar, path, target, header);
}

static bool write_part(struct tar *tar, const uint8_t *data, size_t size) {
    while (size > 0) {
        const ssize_t written = write(tar->file, data, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return failed(tar);
        data += written;
        size -= (size_t)written;
        tar->file_left -= (uint64_t)written;
        tar->unflushed += (uint64_t)written;
    }
    if (tar->file_left == 0)
        return file_finish(tar);
    if (tar->unflushed >= FLUSH_EVERY) {
        sync_file_range(tar->file, 0, 0, SYNC_FILE_RANGE_WRITE);
        tar->unflushed = 0;
    }
    return true;
}

bool tar_add(struct tar *tar, const uint8_t *data, size_t size) {
    while (size > 0) {
        size_t part;
        if (tar->file >= 0) {
            part = size < tar->file_left ? size : (size_t)tar->file_left;
            if (!write_part(tar, data, part))
                return false;
        } else if (tar->padding > 0) {
            part = size < tar->padding ? size : tar->padding;
            tar->padding -= part;
        } else {
            const size_t room = TAR_BLOCK - tar->held;
            part = size < room ? size : room;
            memcpy(tar->block + tar->held, data, part);
            tar->held += part;
            if (tar->held == TAR_BLOCK) {
                tar->held = 0;
                if (!header_take(tar))
                    return false;
            }
        }
        data += part;
        size -= part;
    }
    return true;
}

bool tar_end(struct tar *tar) {
    const bool complete = tar->file < 0 && tar->padding == 0 && tar->held == 0 && tar->end_blocks >= 2;
    if (tar->file >= 0)
        close(tar->file);
    if (tar->folder >= 0)
        close(tar->folder);
    tar->file = tar->folder = -1;
    if (!complete)
        return refuse(tar, "it ends too soon");
    return (tar->bytes_left == 0 && tar->entries_left == 0) || refuse(tar, "it holds less than the trailer says");
}
