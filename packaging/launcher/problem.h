/* What went wrong, in the words that stderr gets: one line, and at most one more that says what to do. */
#ifndef BEETLE_PROBLEM_H
#define BEETLE_PROBLEM_H

#include <stdbool.h>

/* Exit codes. Storage and damage have the numbers that the program itself uses for them. */
enum { CODE_OTHER = 1, CODE_STORAGE = 8, CODE_DAMAGED = 9, CODE_CANNOT_EXECUTE = 126 };

struct problem {
    int code; /* 0: nothing went wrong */
    char text[3072];
    char hint[512];
};

/* Note what went wrong; the first note stays, since what follows from it explains nothing. Always false, to return. */
bool problem_note(struct problem *problem, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
void problem_hint(struct problem *problem, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Print it. Returns its exit code. */
int problem_tell(struct problem *problem);

/* The exit code for a failed system call on a file: storage that is full or read-only, or anything else. */
int problem_code_of(int error);

#endif
