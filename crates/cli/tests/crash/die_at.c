/* Preloaded into the program under test: kills it with SIGKILL at the Nth write or sync of its journal
 * or of a response of the file drop. DIE_AT is "N:how": before the call, after it, or (torn) in the middle
 * of a write. Child processes do not inherit it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum how { BEFORE, AFTER, TORN };
static long left;
static enum how how;

__attribute__((constructor)) static void begin(void) {
    const char *at = getenv("DIE_AT");
    if (at) {
        left = atol(at);
        how = strstr(at, "after") ? AFTER : strstr(at, "torn") ? TORN : BEFORE;
    }
    unsetenv("LD_PRELOAD");
    unsetenv("DIE_AT");
}

static int is_durable_file(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    if (strstr(path, ".lock")) return 0;
    return strstr(path, "journal.db") || strstr(path, "/.antiphon/requests/");
}

/* Whether this is the Nth call. */
static int is_nth(int fd) {
    if (left <= 0 || !is_durable_file(fd)) return 0;
    return __sync_sub_and_fetch(&left, 1) == 0;
}

static void die(void) { kill(getpid(), SIGKILL); }

#define REAL(name) \
    static __typeof__(name) *real; \
    if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name); \
    int ends = is_nth(fd); \
    if (ends && how == BEFORE) die();

ssize_t write(int fd, const void *bytes, size_t count) {
    REAL(write)
    ssize_t written = real(fd, bytes, ends && how == TORN ? count / 2 : count);
    if (ends) die();
    return written;
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) {
    REAL(pwrite64)
    ssize_t written = real(fd, bytes, ends && how == TORN ? count / 2 : count, at);
    if (ends) die();
    return written;
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) {
    REAL(pwrite)
    ssize_t written = real(fd, bytes, ends && how == TORN ? count / 2 : count, at);
    if (ends) die();
    return written;
}

int fdatasync(int fd) {
    REAL(fdatasync)
    int done = real(fd);
    if (ends) die();
    return done;
}

int fsync(int fd) {
    REAL(fsync)
    int done = real(fd);
    if (ends) die();
    return done;
}
