/* A wall clock that jumps: added to what the kernel says once TSLAB_CLOCK_AT (monotonic seconds) has passed. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static double at = -1.0, by = 0.0;
static int told = 0;

static void tell(void) {
    const char *path = getenv("TSLAB_CLOCK_PROOF");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (file) {
        fprintf(file, "process %d\n", (int)getpid());
        fclose(file);
    }
}

static long jump(void) {
    struct timespec now;
    if (at < 0) {
        const char *when = getenv("TSLAB_CLOCK_AT"), *size = getenv("TSLAB_CLOCK_BY");
        at = when ? atof(when) : 1e18;
        by = size ? atof(size) : 0.0;
    }
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    if (now.tv_sec + now.tv_nsec / 1e9 < at) return 0;
    if (!told) {
        told = 1;
        tell();
    }
    return (long)by;
}

int clock_gettime(clockid_t clock, struct timespec *out) {
    int done = (int)syscall(SYS_clock_gettime, clock, out);
    if (done == 0 && clock == CLOCK_REALTIME) out->tv_sec += jump();
    return done;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    out->tv_sec = now.tv_sec;
    out->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}
