/* Stands in for the program of a tree: says how it was started. With the argument `hang` it then waits for the end of
   its input. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void say_descriptors(void) {
    DIR *listing = opendir("/proc/self/fd");
    struct dirent *entry;
    while ((entry = readdir(listing)) != NULL) {
        const int fd = atoi(entry->d_name);
        char link[64], target[4096];
        if (entry->d_name[0] == '.' || fd == dirfd(listing))
            continue;
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        const ssize_t length = readlink(link, target, sizeof target - 1);
        printf("fd %d %.*s\n", fd, (int)length, target);
    }
    closedir(listing);
}

int main(int argc, char **argv, char **environment) {
    char exe[4096];
    const ssize_t length = readlink("/proc/self/exe", exe, sizeof exe);
    const mode_t mask = umask(0);
    printf("pid %d\nexe %.*s\numask %03o\n", (int)getpid(), (int)length, exe, (unsigned)mask);
    for (int i = 0; i < argc; i++)
        printf("arg %s\n", argv[i]);
    for (char **each = environment; *each != NULL; each++)
        printf("env %s\n", *each);
    for (int number = 1; number < 32; number++) {
        struct sigaction action;
        if (sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_DFL)
            printf("signal %d\n", number);
    }
    say_descriptors();
    puts("end");
    fflush(stdout);
    char byte;
    while (argc > 1 && strcmp(argv[1], "hang") == 0 && read(STDIN_FILENO, &byte, 1) > 0)
        ;
    return 0;
}
