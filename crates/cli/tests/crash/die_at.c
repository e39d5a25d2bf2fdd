/* Preloaded into the program under test: kills it with SIGKILL at the Nth write or sync of its journal
 * or of a response of the file drop. DIE_AT is "N:how": before the call, after it, or (torn) in the middle
 * of a write. SYNC_LOG names a file that gets the path of every file that is synced. Child processes inherit
 * neither, except for the process that `antiphon run` starts to do its work. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum how { BEFORE, AFTER, TORN };
static long left;
static enum how how;
static int sync_log = -1;

/* Whether this process only stands in front of `antiphon run`, which it starts next: that one dies. */
static int is_in_front(void) {
    static char text[65536];
    if (getenv("ANTIPHON_FOREGROUND_PID")) return 0;
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0) close(fd);
    for (char *word = text; word < text + length; word += strlen(word) + 1)
        if (!strcmp(word, "run")) return 1;
    return 0;
}

__attribute__((constructor)) static void begin(void) {
    if (is_in_front()) return;
    const char *at = getenv("DIE_AT");
    if (at) {
        left = atol(at);
        how = strstr(at, "after") ? AFTER : strstr(at, "torn") ? TORN : BEFORE;
    }
    const char *log = getenv("SYNC_LOG");
    if (log) sync_log = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    unsetenv("LD_PRELOAD");
    unsetenv("DIE_AT");
    unsetenv("SYNC_LOG");
}

static int path_of(int fd, char *path, size_t size) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, size - 2);
    if (length < 0) return 0;
    path[length] = 0;
    return 1;
}

static void log_sync(int fd) {
    char path[4096];
    if (sync_log < 0 || !path_of(fd, path, sizeof path)) return;
    strcat(path, "\n");
    dprintf(sync_log, "%s", path);
}

static int is_durable_file(int fd) {
    char path[4096];
    if (!path_of(fd, path, sizeof path)) return 0;
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
    log_sync(fd);
    int done = real(fd);
    if (ends) die();
    return done;
}

int fsync(int fd) {
    REAL(fsync)
    log_sync(fd);
    int done = real(fd);
    if (ends) die();
    return done;
}
