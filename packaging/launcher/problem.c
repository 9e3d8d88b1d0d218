#include "problem.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

bool problem_note(struct problem *problem, int code, const char *format, ...) {
    if (problem->code != 0)
        return false;
    va_list values;
    va_start(values, format);
    vsnprintf(problem->text, sizeof problem->text, format, values);
    va_end(values);
    problem->code = code;
    return false;
}

void problem_hint(struct problem *problem, const char *format, ...) {
    va_list values;
    va_start(values, format);
    vsnprintf(problem->hint, sizeof problem->hint, format, values);
    va_end(values);
}

/* A path may hold a line break or a terminal's control codes; a line on stderr may not. */
static void make_plain(char *text) {
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            *text = '?';
}

int problem_tell(struct problem *problem) {
    make_plain(problem->text);
    make_plain(problem->hint);
    struct iovec parts[] = {
        {"beetle: ", 8},
        {problem->text, strlen(problem->text)},
        {"\n", 1},
        {problem->hint, strlen(problem->hint)},
        {"\n", 1},
    };
    /* One call, so that the lines of several starts do not mix. When stderr takes nothing, the exit code says it all. */
    ssize_t ignored = writev(STDERR_FILENO, parts, problem->hint[0] != '\0' ? 5 : 3);
    (void)ignored;
    return problem->code;
}

int problem_code_of(int error) {
    switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EROFS:
        return CODE_STORAGE;
    default:
        return CODE_OTHER;
    }
}
