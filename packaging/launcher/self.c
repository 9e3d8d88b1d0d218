#include "self.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The trailer, little endian, the last 192 bytes of the file; packaging/onefile.py writes it. */
enum {
    MAGIC_SIZE = 16,
    AT_NAME = 16,
    AT_PAYLOAD_OFFSET = 80,
    AT_PAYLOAD_SIZE = 88,
    AT_UNPACKED_BYTES = 96,
    AT_ENTRIES = 104,
    AT_RESERVED = 112,
    AT_DIGEST = 128,
    TRAILER_SIZE = 192,
    CHUNK = 256 * 1024
};

static const uint8_t MAGIC[MAGIC_SIZE] = "beetle-one-file";

static uint64_t little64(const uint8_t *bytes) {
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--)
        value = value << 8 | bytes[i];
    return value;
}

static bool all_zero(const uint8_t *bytes, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

static bool is_name_byte(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c != '\0' && strchr(".+_-", c));
}

bool is_tree_name(const char *text) {
    const size_t size = strlen(text), digits = 12;
    if (size < digits + 2 || size >= NAME_SIZE || text[0] < '0' || text[0] > '9' || text[size - digits - 1] != '-')
        return false;
    for (size_t i = 0; i < size; i++)
        if (!is_name_byte(text[i]))
            return false;
    return strspn(text + size - digits, "0123456789abcdef") == digits;
}

bool self_damaged(const struct self *self, struct problem *problem, const char *how) {
    problem_note(problem, CODE_DAMAGED, "damaged file: %s: %s", self->path, how);
    problem_hint(problem, "get this file again, and compare it with its published SHA-256");
    return false;
}

static bool read_trailer(struct self *self, const uint8_t *trailer, struct problem *problem) {
    if (memcmp(trailer, MAGIC, MAGIC_SIZE) != 0)
        return self_damaged(self, problem, "its end is missing or changed");
    memcpy(self->name, trailer + AT_NAME, NAME_SIZE);
    self->payload_offset = little64(trailer + AT_PAYLOAD_OFFSET);
    self->payload_size = little64(trailer + AT_PAYLOAD_SIZE);
    self->unpacked_bytes = little64(trailer + AT_UNPACKED_BYTES);
    self->entries = little64(trailer + AT_ENTRIES);
    memcpy(self->digest, trailer + AT_DIGEST, BLAKE2B_DIGEST);

    const uint64_t before = self->file_size - TRAILER_SIZE;
    const bool terminated = self->name[NAME_SIZE - 1] == '\0';
    if (!terminated || !is_tree_name(self->name) ||
        !all_zero(trailer + AT_NAME + strlen(self->name), NAME_SIZE - strlen(self->name)) ||
        !all_zero(trailer + AT_RESERVED, AT_DIGEST - AT_RESERVED) || self->payload_offset > before ||
        self->payload_size != before - self->payload_offset)
        return self_damaged(self, problem, "its trailer is not one that the packer writes");
    return true;
}

bool self_open(struct self *self, struct problem *problem) {
    const ssize_t length = readlink("/proc/self/exe", self->path, sizeof self->path - 1);
    self->path[length > 0 ? length : 0] = '\0';
    self->fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct stat about;
    if (self->fd < 0 || fstat(self->fd, &about) < 0) {
        problem_note(problem, CODE_OTHER, "cannot read its own file: /proc/self/exe: %s", strerror(errno));
        problem_hint(problem, errno == ENOENT ? "mount /proc" : "make the file readable for the user who starts it");
        return false;
    }
    self->file_size = (uint64_t)about.st_size;
    uint8_t trailer[TRAILER_SIZE];
    if (about.st_size < TRAILER_SIZE)
        return self_damaged(self, problem, "its end is missing or changed");
    const ssize_t got = pread(self->fd, trailer, TRAILER_SIZE, about.st_size - TRAILER_SIZE);
    if (got < 0)
        return problem_note(problem, CODE_OTHER, "cannot read its own file: %s: %s", self->path, strerror(errno));
    if (got != TRAILER_SIZE)
        return self_damaged(self, problem, "its end is missing or changed");
    return read_trailer(self, trailer, problem);
}

bool self_is_whole(const struct self *self) {
    static uint8_t chunk[CHUNK];
    struct blake2b hash;
    blake2b_begin(&hash);
    const uint64_t end = self->file_size - BLAKE2B_DIGEST;
    for (uint64_t at = 0; at < end;) {
        const uint64_t rest = end - at;
        const ssize_t got = pread(self->fd, chunk, rest < CHUNK ? (size_t)rest : CHUNK, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        blake2b_add(&hash, chunk, (size_t)got);
        at += (uint64_t)got;
    }
    uint8_t digest[BLAKE2B_DIGEST];
    blake2b_end(&hash, digest);
    return memcmp(digest, self->digest, BLAKE2B_DIGEST) == 0;
}
