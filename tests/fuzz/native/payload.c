/* Fuzz what the launcher reads of its own file: the trailer, the payload's compression and the tar in it.
 *
 * The first byte chooses: 0 takes the rest as the last 192 bytes of a file, 1 as a payload as it stands, else as a tar
 * that is compressed here. The functions are those of the launcher, the static ones too. */
#include <sys/mman.h>

#define CHUNK SELF_CHUNK /* each has one of its own */
#include "self.c"
#undef CHUNK
#include "unpack.c"

static int above = -1;

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
    const char *folder = getenv("TMPDIR");
    char name[4096];
    snprintf(name, sizeof name, "%s/fuzz-payload-XXXXXX", folder == NULL ? "/tmp" : folder);
    if (mkdtemp(name) == NULL || (above = open(name, O_RDONLY | O_DIRECTORY)) < 0)
        abort();
    return 0;
}

static void try_trailer(const uint8_t *data, size_t size) {
    static struct self self;
    static struct problem problem;
    uint8_t trailer[TRAILER_SIZE] = {0};
    memcpy(trailer, data, size < TRAILER_SIZE ? size : TRAILER_SIZE);
    memset(&self, 0, sizeof self);
    problem.code = 0;
    self.file_size = 1 << 20;
    if (!read_trailer(&self, trailer, &problem)) {
        if (problem.code != CODE_DAMAGED)
            abort();
        return;
    }
    if (self.payload_offset + self.payload_size != self.file_size - TRAILER_SIZE || !is_tree_name(self.name) ||
        strchr(self.name, '/') != NULL)
        abort();
}

static void try_payload(const uint8_t *data, size_t size) {
    static struct self self;
    static struct problem problem;
    static struct place place;
    memset(&self, 0, sizeof self);
    memset(&place, 0, sizeof place);
    problem.code = 0;
    self.fd = memfd_create("file", MFD_CLOEXEC);
    if (self.fd < 0 || write(self.fd, data, size) != (ssize_t)size || mkdirat(above, "tree", 0700) < 0)
        abort();
    self.file_size = self.payload_size = size;
    self.unpacked_bytes = 1 << 20;
    self.entries = 64;
    const int folder = openat(above, "tree", O_RDONLY | O_DIRECTORY);
    const enum outcome outcome = unpack_payload(&self, &place, folder, &problem);
    if ((outcome == BROKEN && problem.code == 0) || (outcome == REFUSED && place.code == 0) ||
        (outcome == UNPACKED && problem.code != 0))
        abort(); /* what went wrong is told, and nothing else */
    close(folder);
    close(self.fd);
    folder_remove(above, "tree");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2)
        return 0;
    const uint8_t kind = data[0];
    data++, size--;
    if (kind == 0) {
        try_trailer(data, size);
    } else if (kind == 1) {
        try_payload(data, size);
    } else {
        const size_t most = ZSTD_compressBound(size);
        uint8_t *packed = malloc(most);
        const size_t made = packed == NULL ? 0 : ZSTD_compress(packed, most, data, size, 1);
        if (made == 0 || ZSTD_isError(made))
            abort();
        try_payload(packed, made);
        free(packed);
    }
    return 0;
}
