#include "stop.h"

#include <signal.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

static const int SIGNALS[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
enum { COUNT = sizeof SIGNALS / sizeof SIGNALS[0] };

static volatile sig_atomic_t asked;
static struct sigaction before[COUNT], before_large;
static mode_t umask_before;

static void note(int number) {
    asked = number;
}

void stop_hold(void) {
    const struct sigaction noting = {.sa_handler = note};
    for (int i = 0; i < COUNT; i++) {
        sigaction(SIGNALS[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN) /* as under nohup: it stays ignored */
            sigaction(SIGNALS[i], &noting, NULL);
    }
    const struct sigaction ignoring = {.sa_handler = SIG_IGN};
    sigaction(SIGXFSZ, &ignoring, &before_large);
    umask_before = umask(0);
}

bool stop_asked(void) {
    return asked != 0;
}

void stop_release(void) {
    umask(umask_before);
    sigaction(SIGXFSZ, &before_large, NULL);
    for (int i = 0; i < COUNT; i++)
        sigaction(SIGNALS[i], &before[i], NULL);
    if (asked == 0)
        return;
    raise(asked);
    _exit(128 + asked); /* not reached: what the signal does by default is to end the process */
}
