#define _GNU_SOURCE
#include "CLinux.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

_Static_assert(CLINUX_READABLE == EPOLLIN && CLINUX_WRITABLE == EPOLLOUT, "epoll's bits");
_Static_assert(CLINUX_ERROR == EPOLLERR && CLINUX_HANGUP == EPOLLHUP, "epoll's bits");
_Static_assert(CLINUX_PEER_FINISHED == EPOLLRDHUP && CLINUX_EDGE == EPOLLET, "epoll's bits");

int clinux_epoll_create(void) {
    int fd = epoll_create1(EPOLL_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int control(int epoll, int operation, int fd, uint32_t events, uint64_t key) {
    struct epoll_event event = {.events = events, .data.u64 = key};
    return epoll_ctl(epoll, operation, fd, &event) < 0 ? -errno : 0;
}

int clinux_epoll_add(int epoll, int fd, uint32_t events, uint64_t key) {
    return control(epoll, EPOLL_CTL_ADD, fd, events, key);
}

int clinux_epoll_modify(int epoll, int fd, uint32_t events, uint64_t key) {
    return control(epoll, EPOLL_CTL_MOD, fd, events, key);
}

int clinux_epoll_remove(int epoll, int fd) { return control(epoll, EPOLL_CTL_DEL, fd, 0, 0); }

static int wait_events(int epoll, struct epoll_event *events, int64_t nanoseconds) {
    // Some sandboxes filter the newer call; milliseconds, rounded up, are good enough there.
    static _Bool has_pwait2 = 1;
    if (__atomic_load_n(&has_pwait2, __ATOMIC_RELAXED)) {
        struct timespec timeout = {.tv_sec = nanoseconds / 1000000000, .tv_nsec = nanoseconds % 1000000000};
        int count = epoll_pwait2(epoll, events, CLINUX_EVENTS_MAX, nanoseconds < 0 ? NULL : &timeout, NULL);
        if (count >= 0 || (errno != ENOSYS && errno != EPERM)) return count;
        __atomic_store_n(&has_pwait2, 0, __ATOMIC_RELAXED);
    }
    int64_t milliseconds = nanoseconds < 0 ? -1 : nanoseconds / 1000000 + (nanoseconds % 1000000 != 0);
    if (milliseconds > 3600000) milliseconds = 3600000;
    return epoll_wait(epoll, events, CLINUX_EVENTS_MAX, (int)milliseconds);
}

int clinux_epoll_wait(int epoll, struct clinux_event *events, int64_t timeout_nanoseconds) {
    struct epoll_event raw[CLINUX_EVENTS_MAX];
    int count = wait_events(epoll, raw, timeout_nanoseconds);
    if (count < 0) return errno == EINTR ? 0 : -errno;
    for (int index = 0; index < count; index++) {
        events[index].key = raw[index].data.u64;
        events[index].events = raw[index].events;
    }
    return count;
}

int clinux_eventfd(void) {
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int clinux_eventfd_signal(int fd) {
    uint64_t one = 1;
    return write(fd, &one, sizeof one) < 0 ? -errno : 0;
}

static void fill(sigset_t *set, const int *signals, int count) {
    sigemptyset(set);
    for (int index = 0; index < count; index++) sigaddset(set, signals[index]);
}

void clinux_thread_setup(const char *name) {
    char short_name[16] = {0};
    strncpy(short_name, name, sizeof short_name - 1);
    pthread_setname_np(pthread_self(), short_name);
    const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    clinux_block_signals(signals, 4);
}

int clinux_block_signals(const int *signals, int count) {
    sigset_t set;
    fill(&set, signals, count);
    return -pthread_sigmask(SIG_BLOCK, &set, NULL);
}

int clinux_signalfd(const int *signals, int count) {
    sigset_t set;
    fill(&set, signals, count);
    int fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int clinux_signalfd_read(int fd) {
    struct signalfd_siginfo info;
    ssize_t count = TEMP_FAILURE_RETRY(read(fd, &info, sizeof info));
    if (count < 0) return -errno;
    return count == sizeof info ? (int)info.ssi_signo : -EIO;
}

void clinux_random(void *bytes, size_t count) {
    unsigned char *next = bytes;
    while (count > 0) {
        ssize_t got = getrandom(next, count, 0);
        if (got < 0 && errno == EINTR) continue;
        // No supported kernel lacks the call; going on with bytes that are not random would give away keys.
        if (got <= 0) abort();
        next += got;
        count -= (size_t)got;
    }
}

int clinux_try_lock(int fd) {
    return TEMP_FAILURE_RETRY(flock(fd, LOCK_EX | LOCK_NB)) < 0 ? -errno : 0;
}

int clinux_make_temporary(char *path) {
    int fd = mkostemp(path, O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}
