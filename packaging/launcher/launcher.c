/* The head of the one-file build: runs the program that is packed behind it.
 *
 * The file is this launcher, a zstd-compressed tar of the program's tree, and a trailer (self.c). A start does, in order:
 *
 *  1. reads the trailer, which names the tree, and looks for a folder of that name in the places that may hold it
 *     (places.c): $BEETLE_CACHE alone if that is set, else the prefixes of an installed beetle, the user's cache,
 *     /var/cache. A folder has its name only once it is complete, so nothing in it is looked at. A folder or place that
 *     another user could have changed is not used;
 *  2. if there is none, unpacks the tree into the first place that will do (unpack.c): under the place's lock, so that
 *     of many first starts one unpacks and the others wait; after removing versions that nobody runs, but for the one that was unpacked last, so that two versions used in turn
 *     keep each other's tree (prune.c); into a folder with another name; checking every entry (tar.c);
 *     hashing this whole file beside it in a child process (verify.c, blake2b.c); and only when the hash fits and all is
 *     on the disk, renames the folder;
 *  3. takes a shared lock on the tree's file `in-use`, which the program inherits and which keeps the tree from being
 *     pruned, and becomes the program by execv(): same process, same arguments, same environment.
 *
 * A failure is one line on stderr, at most one more with a hint, and an exit code (problem.h); the half-made folder is
 * gone. So it is after SIGINT, SIGTERM, SIGHUP or SIGQUIT, of which the process then dies (stop.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "places.h"
#include "problem.h"
#include "self.h"
#include "unpack.h"

enum {
    ROUNDS = 10,     /* how often a tree may vanish between finding and locking it */
    LOCK_TRIES = 250 /* at 4 ms */
};

/* A descriptor of ours numbered 0 to 2 would be written to by mistake, or be the program's stdin. The program finds
   what was closed closed again. */
static void occupy_standard_descriptors(void) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR | O_CLOEXEC) < 0)
            return;
}

/* Take the shared lock on `in-use`, on a descriptor that the program inherits. Returns it, or -1 if there is no lock to
   be had here, as on some network file systems: the tree runs all the same. */
static int hold(const struct tree *tree, const char *name) {
    const int use = openat(tree->folder, "in-use", O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    if (use < 0)
        return -1;
    for (int i = 0; i < LOCK_TRIES; i++) {
        if (flock(use, LOCK_SH | LOCK_NB) == 0)
            return use;
        if (errno == EINTR)
            continue;
        /* Whoever holds it alone is about to rename the folder away; blocking until then could block for ever. */
        if (errno != EWOULDBLOCK || !tree_stands(tree, name))
            break;
        nanosleep(&(struct timespec){0, 4 * 1000 * 1000}, NULL);
    }
    close(use);
    return -1;
}

/* Say why execv() did not. Returns true if another place may do better. */
static bool explain(struct place *place, const struct tree *tree, const char *program, int error,
                    struct problem *problem) {
    struct statvfs about;
    if (error == EACCES) {
        const bool noexec = fstatvfs(tree->folder, &about) == 0 && (about.f_flag & ST_NOEXEC) != 0;
        place_refuse(place, CODE_CANNOT_EXECUTE, "%s", noexec ? "mounted noexec" : "running a program there is denied");
        return true;
    }
    problem_note(problem, CODE_CANNOT_EXECUTE, "cannot execute %s: %s", program, strerror(error));
    problem_hint(problem, "remove its folder, and the next start unpacks it again");
    return false;
}

/* Become the program of a place's tree. Returns only if that cannot be: false if the problem says why, true if the tree
   is not there, has just vanished, or the place is now refused. */
static bool run(const struct self *self, struct place *place, char **argv, struct problem *problem) {
    struct tree tree;
    if (!place_find(place, self->name, &tree))
        return true;
    bool others = true;
    const int use = hold(&tree, self->name);
    if (tree_stands(&tree, self->name)) {
        char program[sizeof place->path + sizeof self->name + sizeof "//beetle"];
        snprintf(program, sizeof program, "%s/%s/beetle", place->path, self->name);
        execv(program, argv);
        others = explain(place, &tree, program, errno, problem);
    }
    if (use >= 0)
        close(use);
    tree_close(&tree);
    return others;
}

static enum outcome unpack_somewhere(const struct self *self, struct place *places, int count, char **argv,
                                     struct problem *problem) {
    for (int i = 0; i < count; i++) {
        if (places[i].may_make < 0 || places[i].code != 0)
            continue;
        int lock;
        enum outcome outcome = unpack(self, &places[i], &lock, problem);
        if (outcome == UNPACKED && !run(self, &places[i], argv, problem))
            outcome = BROKEN;
        else if (outcome == UNPACKED && places[i].code != 0)
            outcome = REFUSED; /* it can be unpacked there, but not run */
        if (lock >= 0)
            close(lock);
        if (outcome != REFUSED)
            return outcome;
    }
    return REFUSED;
}

static void start(const struct self *self, struct place *places, int count, char **argv, struct problem *problem) {
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < count; i++)
            if (!run(self, &places[i], argv, problem))
                return;
        switch (unpack_somewhere(self, places, count, argv, problem)) {
        case UNPACKED: /* and removed since */
            break;
        case REFUSED:
            /* A changed byte in the trailer can ask for too much room. */
            if (!self_is_whole(self))
                self_damaged(self, problem, "its bytes are not those that were packed");
            else
                places_exhausted(places, count, self->unpacked_bytes, problem);
            return;
        case BROKEN:
            return;
        }
    }
    problem_note(problem, CODE_OTHER, "cannot start: %s is removed as often as it is unpacked", self->name);
}

int main(int argc, char **argv) {
    (void)argc;
    static struct problem problem;
    static struct self self;
    static struct place places[PLACES];
    occupy_standard_descriptors();
    if (self_open(&self, &problem))
        start(&self, places, places_list(places), argv, &problem);
    return problem_tell(&problem);
}
