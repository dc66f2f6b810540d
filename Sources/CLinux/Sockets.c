#define _GNU_SOURCE
#include "Address.h"
#include "CLinux.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static int open_socket(int family, int type, int protocol) {
    int fd = socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol);
    return fd < 0 ? -errno : fd;
}

int clinux_udp_socket(bool six) { return open_socket(six ? AF_INET6 : AF_INET, SOCK_DGRAM, 0); }
int clinux_tcp_socket(bool six) { return open_socket(six ? AF_INET6 : AF_INET, SOCK_STREAM, IPPROTO_TCP); }
int clinux_unix_socket(void) { return open_socket(AF_UNIX, SOCK_STREAM, 0); }

int clinux_bind(int fd, const struct clinux_address *address) {
    struct sockaddr_storage storage;
    socklen_t length = culvert_to_sockaddr(&storage, address, address->family == 6);
    return bind(fd, (struct sockaddr *)&storage, length) < 0 ? -errno : 0;
}

int clinux_connect(int fd, const struct clinux_address *address) {
    struct sockaddr_storage storage;
    socklen_t length = culvert_to_sockaddr(&storage, address, address->family == 6);
    return connect(fd, (struct sockaddr *)&storage, length) < 0 ? -errno : 0;
}

static socklen_t unix_address(struct sockaddr_un *address, const char *path) {
    size_t length = strlen(path);
    if (length == 0 || length >= sizeof address->sun_path) return 0;
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    memcpy(address->sun_path, path, length);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + 1);
}

int clinux_bind_unix(int fd, const char *path) {
    struct sockaddr_un address;
    socklen_t length = unix_address(&address, path);
    if (length == 0) return -ENAMETOOLONG;
    // The kernel takes the file's mode from the socket's own inode, so that there is no moment with a wider one.
    if (fchmod(fd, 0600) < 0) return -errno;
    return bind(fd, (struct sockaddr *)&address, length) < 0 ? -errno : 0;
}

int clinux_connect_unix(int fd, const char *path) {
    struct sockaddr_un address;
    socklen_t length = unix_address(&address, path);
    if (length == 0) return -ENAMETOOLONG;
    return connect(fd, (struct sockaddr *)&address, length) < 0 ? -errno : 0;
}

int clinux_listen(int fd, int backlog) { return listen(fd, backlog) < 0 ? -errno : 0; }

int clinux_accept(int fd, struct clinux_address *peer) {
    struct sockaddr_storage storage = {0};
    socklen_t length = sizeof storage;
    int accepted =
        TEMP_FAILURE_RETRY(accept4(fd, (struct sockaddr *)&storage, &length, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (accepted < 0) return -errno;
    culvert_from_sockaddr(peer, &storage);
    return accepted;
}

int clinux_local_address(int fd, struct clinux_address *address) {
    struct sockaddr_storage storage = {0};
    socklen_t length = sizeof storage;
    if (getsockname(fd, (struct sockaddr *)&storage, &length) < 0) return -errno;
    culvert_from_sockaddr(address, &storage);
    return 0;
}

int clinux_peer_address(int fd, struct clinux_address *address) {
    struct sockaddr_storage storage = {0};
    socklen_t length = sizeof storage;
    if (getpeername(fd, (struct sockaddr *)&storage, &length) < 0) return -errno;
    culvert_from_sockaddr(address, &storage);
    return 0;
}

int clinux_take_error(int fd) {
    int error = 0;
    socklen_t length = sizeof error;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0 ? errno : error;
}

static int set(int fd, int level, int option, int value) {
    return setsockopt(fd, level, option, &value, sizeof value) < 0 ? -errno : 0;
}

int clinux_set_no_delay(int fd) { return set(fd, IPPROTO_TCP, TCP_NODELAY, 1); }
int clinux_set_reuse_address(int fd) { return set(fd, SOL_SOCKET, SO_REUSEADDR, 1); }
int clinux_set_v6_only(int fd, bool on) { return set(fd, IPPROTO_IPV6, IPV6_V6ONLY, on); }

int clinux_set_linger_zero(int fd) {
    struct linger linger = {.l_onoff = 1, .l_linger = 0};
    return setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger) < 0 ? -errno : 0;
}

int clinux_shutdown_write(int fd) { return shutdown(fd, SHUT_WR) < 0 ? -errno : 0; }

int clinux_peer_uid(int fd, uid_t *uid) {
    struct ucred credentials;
    socklen_t length = sizeof credentials;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) < 0) return -errno;
    *uid = credentials.uid;
    return 0;
}

ssize_t clinux_readv(int fd, const struct iovec *vectors, int count) {
    ssize_t result = TEMP_FAILURE_RETRY(readv(fd, vectors, count));
    return result < 0 ? -errno : result;
}

ssize_t clinux_send(int fd, const void *bytes, size_t count) {
    ssize_t result = TEMP_FAILURE_RETRY(send(fd, bytes, count, MSG_NOSIGNAL));
    return result < 0 ? -errno : result;
}

ssize_t clinux_sendv(int fd, const struct iovec *vectors, size_t count) {
    struct msghdr message = {.msg_iov = (struct iovec *)vectors, .msg_iovlen = count};
    ssize_t result = TEMP_FAILURE_RETRY(sendmsg(fd, &message, MSG_NOSIGNAL));
    return result < 0 ? -errno : result;
}

int clinux_interfaces(
    void *context,
    void (*found)(void *context, const char *name, bool up, bool loopback, const struct clinux_address *address)) {
    struct ifaddrs *list = NULL;
    if (getifaddrs(&list) < 0) return -errno;
    for (struct ifaddrs *entry = list; entry; entry = entry->ifa_next) {
        if (!entry->ifa_addr) continue;
        struct sockaddr_storage storage = {0};
        if (entry->ifa_addr->sa_family == AF_INET) {
            memcpy(&storage, entry->ifa_addr, sizeof(struct sockaddr_in));
        } else if (entry->ifa_addr->sa_family == AF_INET6) {
            memcpy(&storage, entry->ifa_addr, sizeof(struct sockaddr_in6));
        } else {
            continue;
        }
        struct clinux_address address;
        culvert_from_sockaddr(&address, &storage);
        found(context, entry->ifa_name, entry->ifa_flags & IFF_UP, entry->ifa_flags & IFF_LOOPBACK, &address);
    }
    freeifaddrs(list);
    return 0;
}
