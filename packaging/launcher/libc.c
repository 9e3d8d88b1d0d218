#include "libc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where the GNU C library's program loader is on this processor; programs name it by this path. */
#if defined(__x86_64__) && !defined(__ILP32__)
static const char LOADER[] = "/lib64/ld-linux-x86-64.so.2";
#elif defined(__aarch64__)
static const char LOADER[] = "/lib/ld-linux-aarch64.so.1";
#elif defined(__arm__)
static const char LOADER[] = "/lib/ld-linux-armhf.so.3";
#elif defined(__riscv) && __riscv_xlen == 64
static const char LOADER[] = "/lib/ld-linux-riscv64-lp64d.so.1";
#else
static const char LOADER[] = "";
#endif

/* What the library says of itself when it is run: "GNU C Library (…) stable release version 2.36." */
static const char SAID[] = " release version ";

struct version {
    unsigned major, minor;
};

static bool read_version(const char *file, struct version *version) {
    const int fd = open(file, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct stat about;
    if (fd < 0)
        return false;
    const bool regular = fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0;
    const size_t size = regular ? (size_t)about.st_size : 0;
    char *bytes = regular ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    close(fd);
    if (bytes == MAP_FAILED)
        return false;
    char digits[24] = "";
    const char *said = memmem(bytes, size, SAID, sizeof SAID - 1);
    if (said != NULL) {
        said += sizeof SAID - 1;
        const size_t rest = size - (size_t)(said - bytes);
        memcpy(digits, said, rest < sizeof digits - 1 ? rest : sizeof digits - 1);
    }
    munmap(bytes, size);
    return sscanf(digits, "%5u.%5u", &version->major, &version->minor) == 2;
}

/* The version of the library that stands beside the loader. False if it is not found or does not say. */
static bool find_version(const char *loader, struct version *version) {
    char file[PATH_MAX + sizeof "/libc.so.6"];
    snprintf(file, sizeof file, "%s", loader);
    snprintf(strrchr(file, '/'), sizeof "/libc.so.6", "/libc.so.6");
    return read_version(file, version) || read_version("/lib64/libc.so.6", version) ||
           read_version("/usr/lib64/libc.so.6", version) || read_version("/lib/libc.so.6", version);
}

static bool unfit(const struct self *self, struct problem *problem, const char *what) {
    /* A changed byte in the trailer can ask for any version. */
    if (!self_is_whole(self))
        return self_damaged(self, problem, "its bytes are not those that were packed");
    problem_note(problem, CODE_CANNOT_EXECUTE, "cannot run on this system: it needs glibc %u.%u or newer, and %s",
                 self->libc_major, self->libc_minor, what);
    problem_hint(problem, "take a newer system, or build it on this one: sh packaging/build.sh in a checkout");
    return false;
}

bool libc_will_do(const struct self *self, struct problem *problem) {
    if (self->libc_major == 0 || LOADER[0] == '\0')
        return true;
    char loader[PATH_MAX], what[64];
    if (realpath(LOADER, loader) == NULL)
        return errno != ENOENT || unfit(self, problem, "there is none; musl, as in Alpine, does not do");
    struct version found;
    if (!find_version(loader, &found))
        return true;
    if (found.major > self->libc_major || (found.major == self->libc_major && found.minor >= self->libc_minor))
        return true;
    snprintf(what, sizeof what, "glibc %u.%u is there", found.major, found.minor);
    return unfit(self, problem, what);
}
