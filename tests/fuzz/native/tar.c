/* Fuzz the launcher's tar reader: whatever a stream holds, cut wherever it is, nothing appears beside its folder.
 *
 * The first byte says how large the pieces are; what follows is the stream. The mutator makes checksums right again, so
 * that a changed header is read and not refused for its sum. */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "folders.h"
#include "tar.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

static int above = -1;

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
    const char *folder = getenv("TMPDIR");
    char name[4096];
    snprintf(name, sizeof name, "%s/fuzz-tar-XXXXXX", folder == NULL ? "/tmp" : folder);
    if (mkdtemp(name) == NULL || (above = open(name, O_RDONLY | O_DIRECTORY)) < 0)
        abort();
    return 0;
}

static int entries(int folder) {
    DIR *listing = fdopendir(openat(folder, ".", O_RDONLY | O_DIRECTORY));
    int found = 0;
    if (listing == NULL)
        abort();
    while (readdir(listing) != NULL)
        found++;
    closedir(listing);
    return found - 2;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1)
        return 0;
    const size_t piece = 1 + (size_t)data[0] * 7;
    data++, size--;
    if (mkdirat(above, "tree", 0700) < 0)
        abort();
    const int root = openat(above, "tree", O_RDONLY | O_DIRECTORY);
    struct tar tar;
    tar_begin(&tar, root, 1 << 20, 64);
    bool good = true;
    for (size_t at = 0; good && at < size; at += piece)
        good = tar_add(&tar, data + at, size - at < piece ? size - at : piece);
    const bool whole = tar_end(&tar);
    if (!good && tar.error == 0 && tar.why == NULL)
        abort(); /* it says what is wrong */
    if (good && whole && tar.why != NULL)
        abort();
    if (entries(above) != 1)
        abort(); /* something stands beside the tree */
    close(root);
    folder_remove(above, "tree");
    if (entries(above) != 0)
        abort();
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
    size = LLVMFuzzerMutate(data, size, most);
    if (seed % 8 == 0)
        return size;
    for (size_t at = 1; at + TAR_BLOCK <= size; at += TAR_BLOCK) {
        uint8_t *header = data + at;
        if (memcmp(header + 257, "ustar", 5) != 0)
            continue;
        unsigned sum = 0;
        memset(header + 148, ' ', 8);
        for (size_t i = 0; i < TAR_BLOCK; i++)
            sum += header[i];
        char text[8];
        snprintf(text, sizeof text, "%06o", sum);
        memcpy(header + 148, text, 7);
    }
    return size;
}
