/* Refuses to write below the folder in QUOTA_ON, as a system does where a user is beyond a quota. For LD_PRELOAD. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int refused(int file) {
    const char *folder = getenv("QUOTA_ON");
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (!folder || length < 0) return 0;
    path[length] = 0;
    if (strncmp(path, folder, strlen(folder))) return 0;
    errno = EDQUOT;
    return 1;
}

ssize_t write(int file, const void *bytes, size_t count) {
    ssize_t (*next)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
    return refused(file) ? -1 : next(file, bytes, count);
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t offset) {
    ssize_t (*next)(int, const void *, size_t, off64_t) = dlsym(RTLD_NEXT, "pwrite64");
    return refused(file) ? -1 : next(file, bytes, count, offset);
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t offset) {
    return pwrite64(file, bytes, count, offset);
}
