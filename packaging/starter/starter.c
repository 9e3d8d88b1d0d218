/* The program of a tree: starts what PyInstaller froze with the C library that stands in the same tree.
 *
 * A program names its loader by an absolute path, and a tree may stand anywhere, on systems that have another C library,
 * an older one or none. So this program, which needs none, does what the kernel does for others: it maps the
 * interpreter and the loader out of its own folder, tells the loader so in the auxiliary vector, and jumps to it. The
 * process is the one that was started: its pid, its arguments, its environment, and /proc/self/exe, by which the
 * interpreter finds the tree, and the loader $ORIGIN.
 *
 * It is compiled without a C library: one that has set up threads and memory would be in the way of the other.
 */
#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/fcntl.h>
#include <asm/unistd.h>
#include <linux/mman.h>

#define INTERPRETER "_internal/interpreter"
#define LOADER "_internal/libc/" LOADER_NAME

enum { PATH_SIZE = 4096, HEADERS_SIZE = 4096, CANNOT_EXECUTE = 126 };

#if defined(__x86_64__)
#define LOADER_NAME "ld-linux-x86-64.so.2"
#define MACHINE EM_X86_64

static long call(long number, long a, long b, long c, long d, long e, long f) {
    register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

/* The ABI of a start: the stack as the kernel made it, and no function to call at exit. */
static _Noreturn void jump(uintptr_t entry, void *stack) {
    __asm__ volatile("mov %1, %%rsp; xor %%edx, %%edx; xor %%ebp, %%ebp; jmp *%0" : : "r"(entry), "r"(stack) : "rdx");
    __builtin_unreachable();
}

__asm__(".globl _start\n_start:\n xor %ebp, %ebp\n mov %rsp, %rdi\n and $-16, %rsp\n call begin\n");
#elif defined(__aarch64__)
#define LOADER_NAME "ld-linux-aarch64.so.1"
#define MACHINE EM_AARCH64

static long call(long number, long a, long b, long c, long d, long e, long f) {
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d, x4 __asm__("x4") = e, x5 __asm__("x5") = f;
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
}

static _Noreturn void jump(uintptr_t entry, void *stack) {
    __asm__ volatile("mov sp, %1; mov x0, xzr; mov x29, xzr; mov x30, xzr; br %0" : : "r"(entry), "r"(stack) : "x0");
    __builtin_unreachable();
}

__asm__(".globl _start\n_start:\n mov x29, xzr\n mov x30, xzr\n mov x0, sp\n bl begin\n");
#else
#error "there is no start for this processor"
#endif

static size_t length_of(const char *text) {
    size_t length = 0;
    while (text[length] != '\0')
        length++;
    return length;
}

static void say(const char *text) {
    call(__NR_write, 2, (long)text, (long)length_of(text), 0, 0, 0);
}

static _Noreturn void fail(const char *file, const char *why) {
    say("beetle: cannot execute ");
    say(file);
    say(": ");
    say(why);
    say("\nremove the folder of this program, and the next start of the one file unpacks it again\n");
    for (;;)
        call(__NR_exit_group, CANNOT_EXECUTE, 0, 0, 0, 0, 0);
}

static long map(uintptr_t at, size_t size, int protection, int flags, int fd, uint64_t offset) {
    return call(__NR_mmap, (long)at, (long)size, protection, flags, fd, (long)offset);
}

static int failed(long result) {
    return result < 0 && result > -4096;
}

/* A program or library in memory: what a loader is told of it. */
struct image {
    uintptr_t bias, entry, headers;
    size_t header_count;
};

struct file {
    const char *path;
    int fd;
    uintptr_t page; /* size of a page, less one: its bits within a page */
};

static void map_segment(const struct file *file, const Elf64_Phdr *segment, uintptr_t bias) {
    const int protection = (segment->p_flags & PF_R ? PROT_READ : 0) | (segment->p_flags & PF_W ? PROT_WRITE : 0) |
                           (segment->p_flags & PF_X ? PROT_EXEC : 0);
    const uintptr_t begin = bias + segment->p_vaddr, first = begin & ~file->page;
    const uintptr_t filled = begin + segment->p_filesz, end = begin + segment->p_memsz;
    const uintptr_t next = (filled + file->page) & ~file->page;
    if (segment->p_filesz > 0 && failed(map(first, filled - first, protection, MAP_PRIVATE | MAP_FIXED, file->fd,
                                            segment->p_offset & ~(uint64_t)file->page)))
        fail(file->path, "it cannot be mapped");
    if (end == filled)
        return;
    /* What follows in the last page is of the file: the program expects zeros. */
    for (volatile char *byte = (char *)filled; (uintptr_t)byte < next && (protection & PROT_WRITE); byte++)
        *byte = 0;
    if (end > next && failed(map(next, end - next, protection, MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS, -1, 0)))
        fail(file->path, "there is no memory for it");
}

static struct image load(const char *path, uintptr_t page) {
    union {
        Elf64_Ehdr head;
        char bytes[HEADERS_SIZE];
    } front;
    struct file file = {path, (int)call(__NR_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0), page};
    if (file.fd < 0)
        fail(path, "it cannot be opened");
    const long got = call(__NR_pread64, file.fd, (long)&front, HEADERS_SIZE, 0, 0, 0);
    const Elf64_Ehdr *head = &front.head;
    if (got < (long)sizeof *head || head->e_machine != MACHINE || head->e_phentsize != sizeof(Elf64_Phdr) ||
        head->e_phoff > (uint64_t)got || head->e_phnum > ((uint64_t)got - head->e_phoff) / sizeof(Elf64_Phdr))
        fail(path, "it is no program of this processor");
    const Elf64_Phdr *segments = (const Elf64_Phdr *)(front.bytes + head->e_phoff);
    uintptr_t low = UINTPTR_MAX, high = 0;
    for (size_t i = 0; i < head->e_phnum; i++) {
        if (segments[i].p_type != PT_LOAD)
            continue;
        if ((segments[i].p_vaddr & ~page) < low)
            low = segments[i].p_vaddr & ~page;
        if (segments[i].p_vaddr + segments[i].p_memsz > high)
            high = segments[i].p_vaddr + segments[i].p_memsz;
    }
    /* One reservation for all: its parts keep their distances, and nothing else comes between them. */
    const uintptr_t wanted = head->e_type == ET_EXEC ? low : 0;
    const long base = low > high ? -1 : map(wanted, high - low, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (failed(base) || (wanted != 0 && (uintptr_t)base != wanted))
        fail(path, "there is no room for it in memory");
    struct image image = {(uintptr_t)base - low, (uintptr_t)base - low + head->e_entry, 0, head->e_phnum};
    for (size_t i = 0; i < head->e_phnum; i++) {
        const Elf64_Phdr *segment = &segments[i];
        if (segment->p_type != PT_LOAD)
            continue;
        map_segment(&file, segment, image.bias);
        if (head->e_phoff >= segment->p_offset && head->e_phoff < segment->p_offset + segment->p_filesz)
            image.headers = image.bias + segment->p_vaddr + (head->e_phoff - segment->p_offset);
    }
    call(__NR_close, file.fd, 0, 0, 0, 0, 0);
    return image;
}

/* The path of a file of the tree; `tree` ends with a slash. */
static void join(char *path, const char *tree, size_t length, const char *name) {
    for (size_t i = 0; i < length; i++)
        path[i] = tree[i];
    for (size_t i = 0; i <= length_of(name); i++)
        path[length + i] = name[i];
}

_Noreturn void begin(uintptr_t *stack);

_Noreturn void begin(uintptr_t *stack) {
    char tree[PATH_SIZE], path[PATH_SIZE];
    uintptr_t *end = stack + 1 + stack[0] + 1; /* past the arguments and their NULL: the environment */
    while (*end != 0)
        end++;
    Elf64_auxv_t *vector = (Elf64_auxv_t *)(end + 1);
    uintptr_t page = 4095;
    for (Elf64_auxv_t *each = vector; each->a_type != AT_NULL; each++)
        if (each->a_type == AT_PAGESZ)
            page = each->a_un.a_val - 1;

    long length = call(__NR_readlinkat, AT_FDCWD, (long)"/proc/self/exe", (long)tree, PATH_SIZE, 0, 0);
    while (length > 0 && tree[length - 1] != '/')
        length--;
    if (length <= 0 || (size_t)length > PATH_SIZE - sizeof INTERPRETER - sizeof LOADER)
        fail("/proc/self/exe", "it does not name this program; mount /proc");
    join(path, tree, (size_t)length, INTERPRETER);
    const struct image program = load(path, page);
    join(path, tree, (size_t)length, LOADER);
    const struct image loader = load(path, page);

    for (Elf64_auxv_t *each = vector; each->a_type != AT_NULL; each++) {
        switch (each->a_type) {
        case AT_PHDR:
            each->a_un.a_val = program.headers;
            break;
        case AT_PHNUM:
            each->a_un.a_val = program.header_count;
            break;
        case AT_ENTRY:
            each->a_un.a_val = program.entry;
            break;
        case AT_BASE:
            each->a_un.a_val = loader.bias;
            break;
        default:
            break;
        }
    }
    jump(loader.entry, stack);
}
