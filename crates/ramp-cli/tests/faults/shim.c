/* Stands between the command and the system, and lets one call fail: FAULT=write:3 is the third write to a file under FAULT_UNDER. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static char kind[16];
static long number = -1, seen;
static const char *under;

__attribute__((constructor)) static void begin(void) {
    const char *fault = getenv("FAULT");
    under = getenv("FAULT_UNDER");
    if (fault && under && sscanf(fault, "%15[a-z]:%ld", kind, &number) != 2) number = -1;
}

/* Whether it is this call's turn to fail. */
static int fails(const char *what) {
    if (number < 0 || strcmp(kind, what)) return 0;
    return __atomic_add_fetch(&seen, 1, __ATOMIC_SEQ_CST) == number;
}

static int is_under(const char *path) { return path && under && !strncmp(path, under, strlen(under)); }

static int fd_under(int fd) {
    char name[64], path[4096];
    if (fd <= 2 || !under) return 0;
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(name, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return is_under(path);
}

static int fail(int error) { errno = error; return -1; }

ssize_t write(int fd, const void *bytes, size_t count) {
    if (fd_under(fd) && fails("write")) return fail(ENOSPC);
    return syscall(SYS_write, fd, bytes, count);
}

ssize_t read(int fd, void *bytes, size_t count) {
    if (fd_under(fd) && fails("read")) return fail(EIO);
    return syscall(SYS_read, fd, bytes, count);
}

int fsync(int fd) {
    if (fd_under(fd) && fails("sync")) return fail(EIO);
    return syscall(SYS_fsync, fd);
}

int fdatasync(int fd) {
    if (fd_under(fd) && fails("sync")) return fail(EIO);
    return syscall(SYS_fdatasync, fd);
}

int rename(const char *from, const char *to) {
    if (fails("rename")) return fail(EIO);
    return syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
}

int open64(const char *path, int flags, ...) {
    mode_t mode = 0;
    if (flags & O_CREAT) {
        va_list more;
        va_start(more, flags);
        mode = va_arg(more, mode_t);
        va_end(more);
        if (fails("create")) return fail(ENOSPC);
    }
    return syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

/* Small pieces are asked for by the million; large ones are where memory ends. */
#define LARGE (1 << 16)

void *malloc(size_t size) { return size >= LARGE && fails("alloc") ? NULL : __libc_malloc(size); }

void *calloc(size_t count, size_t size) {
    return count * size >= LARGE && fails("alloc") ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size) { return size >= LARGE && fails("alloc") ? NULL : __libc_realloc(old, size); }

int posix_memalign(void **to, size_t alignment, size_t size) {
    if (size >= LARGE && fails("alloc")) return ENOMEM;
    *to = __libc_memalign(alignment, size);
    return *to ? 0 : ENOMEM;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *with) {
    if (number >= 0 && !strcmp(kind, "thread")) return EAGAIN;
    int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = dlsym(RTLD_NEXT, "pthread_create");
    return next(thread, attributes, run, with);
}
