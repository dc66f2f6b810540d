#define _GNU_SOURCE
#include "Address.h"
#include "CLinux.h"

#include <errno.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

static int set(int fd, int level, int option, int value) {
    return setsockopt(fd, level, option, &value, sizeof value) < 0 ? -errno : 0;
}

int clinux_udp_setup(int fd, bool six, int buffer_bytes) {
    int result = six ? set(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1) : set(fd, IPPROTO_IP, IP_PKTINFO, 1);
    if (result < 0) return result;
    // A dual-stack socket takes the IPv4 options too: they hold for its v4-mapped packets.
    set(fd, IPPROTO_IP, IP_RECVTOS, 1);
    set(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
    if (six) {
        set(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
        set(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
    }
    set(fd, IPPROTO_UDP, UDP_GRO, 1);
    // The forced forms pass net.core.[rw]mem_max where the process may; the others are cut to it.
    if (set(fd, SOL_SOCKET, SO_RCVBUFFORCE, buffer_bytes) < 0) set(fd, SOL_SOCKET, SO_RCVBUF, buffer_bytes);
    if (set(fd, SOL_SOCKET, SO_SNDBUFFORCE, buffer_bytes) < 0) set(fd, SOL_SOCKET, SO_SNDBUF, buffer_bytes);
    return 0;
}

bool clinux_udp_can_segment(int fd) {
    int value = 0;
    socklen_t length = sizeof value;
    return getsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &value, &length) == 0;
}

// Room for packet information, TOS and the segment size of one message.
#define CONTROL_BYTES 192

struct control {
    _Alignas(struct cmsghdr) unsigned char bytes[CONTROL_BYTES];
};

_Static_assert(
    CMSG_SPACE(sizeof(struct in6_pktinfo)) + CMSG_SPACE(sizeof(struct in_pktinfo)) + 3 * CMSG_SPACE(sizeof(int))
        <= CONTROL_BYTES,
    "all control messages of one datagram fit");

struct clinux_receiver {
    unsigned capacity;
    struct mmsghdr *messages;
    struct iovec *vectors;
    struct sockaddr_storage *names;
    struct control *controls;
    unsigned char *bytes;
};

void clinux_receiver_destroy(struct clinux_receiver *receiver) {
    if (!receiver) return;
    free(receiver->messages);
    free(receiver->vectors);
    free(receiver->names);
    free(receiver->controls);
    free(receiver->bytes);
    free(receiver);
}

struct clinux_receiver *clinux_receiver_create(unsigned messages, size_t bytes_each) {
    struct clinux_receiver *receiver = calloc(1, sizeof *receiver);
    if (!receiver) return NULL;
    receiver->capacity = messages;
    receiver->messages = calloc(messages, sizeof *receiver->messages);
    receiver->vectors = calloc(messages, sizeof *receiver->vectors);
    receiver->names = calloc(messages, sizeof *receiver->names);
    receiver->controls = calloc(messages, sizeof *receiver->controls);
    receiver->bytes = malloc(messages * bytes_each);
    if (!receiver->messages || !receiver->vectors || !receiver->names || !receiver->controls || !receiver->bytes) {
        clinux_receiver_destroy(receiver);
        return NULL;
    }
    for (unsigned index = 0; index < messages; index++) {
        receiver->vectors[index] =
            (struct iovec){.iov_base = receiver->bytes + index * bytes_each, .iov_len = bytes_each};
        struct msghdr *header = &receiver->messages[index].msg_hdr;
        header->msg_iov = &receiver->vectors[index];
        header->msg_iovlen = 1;
        header->msg_name = &receiver->names[index];
        header->msg_control = &receiver->controls[index];
    }
    return receiver;
}

int clinux_receiver_receive(struct clinux_receiver *receiver, int fd) {
    for (unsigned index = 0; index < receiver->capacity; index++) {
        struct msghdr *header = &receiver->messages[index].msg_hdr;
        header->msg_namelen = sizeof *receiver->names;
        header->msg_controllen = sizeof *receiver->controls;
    }
    int count = TEMP_FAILURE_RETRY(recvmmsg(fd, receiver->messages, receiver->capacity, 0, NULL));
    return count < 0 ? -errno : count;
}

bool clinux_receiver_message(struct clinux_receiver *receiver, unsigned index, struct clinux_received *message) {
    struct msghdr *header = &receiver->messages[index].msg_hdr;
    if (header->msg_flags & MSG_TRUNC) return false;
    message->bytes = receiver->vectors[index].iov_base;
    message->count = receiver->messages[index].msg_len;
    message->segment = message->count;
    message->ecn = 0;
    memset(&message->local, 0, sizeof message->local);
    culvert_from_sockaddr(&message->remote, &receiver->names[index]);
    for (struct cmsghdr *control = CMSG_FIRSTHDR(header); control; control = CMSG_NXTHDR(header, control)) {
        if (control->cmsg_level == IPPROTO_IP && control->cmsg_type == IP_PKTINFO) {
            struct in_pktinfo info;
            memcpy(&info, CMSG_DATA(control), sizeof info);
            culvert_set_v4(&message->local, info.ipi_addr);
        } else if (control->cmsg_level == IPPROTO_IPV6 && control->cmsg_type == IPV6_PKTINFO) {
            struct in6_pktinfo info;
            memcpy(&info, CMSG_DATA(control), sizeof info);
            culvert_set_v6(&message->local, &info.ipi6_addr);
        } else if (control->cmsg_level == IPPROTO_IP && control->cmsg_type == IP_TOS) {
            message->ecn = *CMSG_DATA(control) & 3;
        } else if (control->cmsg_level == IPPROTO_IPV6 && control->cmsg_type == IPV6_TCLASS) {
            int traffic_class;
            memcpy(&traffic_class, CMSG_DATA(control), sizeof traffic_class);
            message->ecn = traffic_class & 3;
        } else if (control->cmsg_level == IPPROTO_UDP && control->cmsg_type == UDP_GRO) {
            int segment;
            memcpy(&segment, CMSG_DATA(control), sizeof segment);
            if (segment > 0) message->segment = (size_t)segment;
        }
    }
    return message->remote.family != 0;
}

struct clinux_sender {
    bool six;
    struct mmsghdr *messages;
    struct iovec *vectors;
    struct sockaddr_storage *names;
    struct control *controls;
};

void clinux_sender_destroy(struct clinux_sender *sender) {
    if (!sender) return;
    free(sender->messages);
    free(sender->vectors);
    free(sender->names);
    free(sender->controls);
    free(sender);
}

struct clinux_sender *clinux_sender_create(unsigned messages, bool six) {
    struct clinux_sender *sender = calloc(1, sizeof *sender);
    if (!sender) return NULL;
    sender->six = six;
    sender->messages = calloc(messages, sizeof *sender->messages);
    sender->vectors = calloc(messages, sizeof *sender->vectors);
    sender->names = calloc(messages, sizeof *sender->names);
    sender->controls = calloc(messages, sizeof *sender->controls);
    if (!sender->messages || !sender->vectors || !sender->names || !sender->controls) {
        clinux_sender_destroy(sender);
        return NULL;
    }
    for (unsigned index = 0; index < messages; index++) {
        struct msghdr *header = &sender->messages[index].msg_hdr;
        header->msg_iov = &sender->vectors[index];
        header->msg_iovlen = 1;
        header->msg_name = &sender->names[index];
    }
    return sender;
}

// Appends one control message to the `used` bytes.
static void append(
    struct control *control, size_t *used, int level, int type, const void *data, size_t size) {
    struct cmsghdr *header = (struct cmsghdr *)(control->bytes + *used);
    header->cmsg_level = level;
    header->cmsg_type = type;
    header->cmsg_len = CMSG_LEN(size);
    memcpy(CMSG_DATA(header), data, size);
    *used += CMSG_SPACE(size);
}

void clinux_sender_set(
    struct clinux_sender *sender, unsigned index, void *bytes, size_t count, size_t segment,
    const struct clinux_address *local, const struct clinux_address *remote, uint8_t ecn) {
    struct msghdr *header = &sender->messages[index].msg_hdr;
    struct control *control = &sender->controls[index];
    size_t used = 0;
    sender->vectors[index] = (struct iovec){.iov_base = bytes, .iov_len = count};
    header->msg_namelen = culvert_to_sockaddr(&sender->names[index], remote, sender->six);
    if (local->family != 0) {
        if (sender->six) {
            struct in6_pktinfo info = {.ipi6_addr = culvert_v6(local)};
            append(control, &used, IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof info);
        } else {
            struct in_pktinfo info = {.ipi_spec_dst = culvert_v4(local)};
            append(control, &used, IPPROTO_IP, IP_PKTINFO, &info, sizeof info);
        }
    }
    if (ecn != 0) {
        int tos = ecn & 3;
        if (remote->family == 4) {
            append(control, &used, IPPROTO_IP, IP_TOS, &tos, sizeof tos);
        } else {
            append(control, &used, IPPROTO_IPV6, IPV6_TCLASS, &tos, sizeof tos);
        }
    }
    if (segment != 0) {
        uint16_t size = (uint16_t)segment;
        append(control, &used, IPPROTO_UDP, UDP_SEGMENT, &size, sizeof size);
    }
    header->msg_control = used ? control->bytes : NULL;
    header->msg_controllen = used;
}

int clinux_sender_send(struct clinux_sender *sender, int fd, unsigned count) {
    int sent = TEMP_FAILURE_RETRY(sendmmsg(fd, sender->messages, count, MSG_NOSIGNAL));
    return sent < 0 ? -errno : sent;
}
