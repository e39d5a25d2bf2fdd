/* Preloaded into the program under test: its journal finds the disk full, and its wall clock is shifted, as the
 * two numbers in the file FAULTS say, which the test changes at any time. Child processes do not inherit it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* The first is not zero while the disk is full; the second is added to the wall clock, in seconds. */
static volatile long *faults;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("FAULTS");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file >= 0) {
        void *mapped = mmap(NULL, 2 * sizeof(long), PROT_READ, MAP_SHARED, file, 0);
        if (mapped != MAP_FAILED) faults = mapped;
        close(file);
    }
    unsetenv("LD_PRELOAD");
    unsetenv("FAULTS");
}

static int is_full(int fd) {
    char link[64], path[4096];
    if (!faults || !faults[0]) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return strstr(path, "journal.db") && !strstr(path, ".lock");
}

#define REAL(name) \
    static __typeof__(name) *real; \
    if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name);

#define UNLESS_FULL(name, ...) \
    REAL(name) \
    if (is_full(fd)) { \
        errno = ENOSPC; \
        return -1; \
    } \
    return real(__VA_ARGS__);

ssize_t write(int fd, const void *bytes, size_t count) { UNLESS_FULL(write, fd, bytes, count) }

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) {
    UNLESS_FULL(pwrite, fd, bytes, count, at)
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) {
    UNLESS_FULL(pwrite64, fd, bytes, count, at)
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    REAL(clock_gettime)
    int done = real(clock, now);
    if (done == 0 && clock == CLOCK_REALTIME && faults) now->tv_sec += faults[1];
    return done;
}
