#define _GNU_SOURCE
#include "Address.h"
#include "CLinux.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

struct request {
    struct nlmsghdr header;
    struct inet_diag_req_v2 body;
};

// From include/net/tcp_states.h, which user space does not get.
enum { TCP_STATE_LISTEN = 10 };

static int ask(int fd, const struct request *request, const struct inet_diag_msg **answer, void *buffer, size_t size) {
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    if (TEMP_FAILURE_RETRY(
            sendto(fd, request, sizeof *request, 0, (const struct sockaddr *)&kernel, sizeof kernel)) < 0) {
        return -errno;
    }
    ssize_t count = TEMP_FAILURE_RETRY(recv(fd, buffer, size, 0));
    if (count < 0) return -errno;
    const struct nlmsghdr *header = buffer;
    if (!NLMSG_OK(header, (size_t)count)) return -EPROTO;
    if (header->nlmsg_type == NLMSG_ERROR) {
        const struct nlmsgerr *error = NLMSG_DATA(header);
        if (header->nlmsg_len < NLMSG_LENGTH(sizeof *error)) return -EPROTO;
        return error->error < 0 ? error->error : -EPROTO;
    }
    if (header->nlmsg_type != SOCK_DIAG_BY_FAMILY) return -EPROTO;
    if (header->nlmsg_len < NLMSG_LENGTH(sizeof **answer)) return -EPROTO;
    *answer = NLMSG_DATA(header);
    return 0;
}

int clinux_tcp_user(const struct clinux_address *source, const struct clinux_address *destination, uid_t *uid) {
    if (source->family != destination->family) return -EINVAL;
    bool six = source->family == 6;
    struct request request = {
        .header = {
            .nlmsg_len = sizeof request, .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST},
        .body = {
            .sdiag_family = six ? AF_INET6 : AF_INET,
            .sdiag_protocol = IPPROTO_TCP,
            .idiag_states = ~0u,
            .id = {
                .idiag_sport = htons(source->port),
                .idiag_dport = htons(destination->port),
                .idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}}};
    if (six) {
        struct in6_addr from = culvert_v6(source), to = culvert_v6(destination);
        memcpy(request.body.id.idiag_src, &from, sizeof from);
        memcpy(request.body.id.idiag_dst, &to, sizeof to);
    } else {
        request.body.id.idiag_src[0] = culvert_v4(source).s_addr;
        request.body.id.idiag_dst[0] = culvert_v4(destination).s_addr;
    }

    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (fd < 0) return -errno;
    // The kernel answers within the call that asks; the limit only keeps a filtered answer from holding the caller.
    struct timeval limit = {.tv_sec = 1};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    _Alignas(struct nlmsghdr) unsigned char buffer[4096];
    const struct inet_diag_msg *answer = NULL;
    int result = ask(fd, &request, &answer, buffer, sizeof buffer);
    close(fd);
    if (result < 0) return result;

    // When the connection is gone the kernel offers a listener on the same port instead, and sockets that no process
    // holds any more are reported with user 0: neither says anything about the peer.
    if (answer->idiag_state == TCP_STATE_LISTEN || answer->idiag_inode == 0) return -ENOENT;
    if (answer->id.idiag_sport != request.body.id.idiag_sport || answer->id.idiag_dport != request.body.id.idiag_dport) {
        return -ENOENT;
    }
    *uid = answer->idiag_uid;
    return 0;
}
