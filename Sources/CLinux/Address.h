// Conversions between the kernel's socket addresses and struct clinux_address.
#ifndef CULVERT_ADDRESS_H
#define CULVERT_ADDRESS_H

#include "CLinux.h"

#include <endian.h>
#include <netinet/in.h>
#include <string.h>

static inline void culvert_set_v4(struct clinux_address *address, struct in_addr from) {
    address->high = 0;
    address->low = ntohl(from.s_addr);
    address->family = 4;
}

static inline void culvert_set_v6(struct clinux_address *address, const struct in6_addr *from) {
    uint64_t halves[2];
    memcpy(halves, from, sizeof halves);
    address->high = be64toh(halves[0]);
    address->low = be64toh(halves[1]);
    address->family = 6;
    if (address->high == 0 && address->low >> 32 == 0xffff) {
        address->low &= 0xffffffff;
        address->family = 4;
    }
}

static inline struct in_addr culvert_v4(const struct clinux_address *address) {
    return (struct in_addr){.s_addr = htonl((uint32_t)address->low)};
}

// IPv4 comes out v4-mapped.
static inline struct in6_addr culvert_v6(const struct clinux_address *address) {
    uint64_t low = address->family == 4 ? 0xffff00000000u | address->low : address->low;
    uint64_t halves[2] = {htobe64(address->high), htobe64(low)};
    struct in6_addr six;
    memcpy(&six, halves, sizeof six);
    return six;
}

static inline void culvert_from_sockaddr(struct clinux_address *address, const struct sockaddr_storage *from) {
    memset(address, 0, sizeof *address);
    if (from->ss_family == AF_INET) {
        const struct sockaddr_in *four = (const struct sockaddr_in *)from;
        culvert_set_v4(address, four->sin_addr);
        address->port = ntohs(four->sin_port);
    } else if (from->ss_family == AF_INET6) {
        const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)from;
        culvert_set_v6(address, &six->sin6_addr);
        address->port = ntohs(six->sin6_port);
    }
}

static inline socklen_t culvert_to_sockaddr(struct sockaddr_storage *to, const struct clinux_address *address, bool six) {
    if (!six) {
        struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(address->port)};
        four.sin_addr = culvert_v4(address);
        memcpy(to, &four, sizeof four);
        return sizeof four;
    }
    struct sockaddr_in6 storage = {.sin6_family = AF_INET6, .sin6_port = htons(address->port)};
    storage.sin6_addr = culvert_v6(address);
    memcpy(to, &storage, sizeof storage);
    return sizeof storage;
}

#endif
