// What Swift's Glibc module lacks, behind functions with plain arguments: the kernel's structures, macros and
// control messages stay in CLinux.c, decisions stay in Swift.
//
// Unless a comment says otherwise a function returns 0 or a count, or the negated errno, and retries EINTR itself.
#ifndef CLINUX_H
#define CLINUX_H

#include "CLinuxGetopt.h"
#include "CLinuxTerminal.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

// An IP address and a port, in host byte order. IPv4 lives in the low 32 bits of `low`; v4-mapped IPv6 addresses never
// come out of these functions, they are family 4.
struct clinux_address {
    uint64_t high;
    uint64_t low;
    uint16_t port;
    uint8_t family; // 4, 6, or 0: none
};

// Arguments ----------------------------------------------------------------------------------------------------------

// The words of the command line, the program's own name among them. They live as long as the process.
int clinux_argument_count(void);
const char *clinux_argument(int index);

// Event loop ---------------------------------------------------------------------------------------------------------

struct clinux_event {
    uint64_t key;
    uint32_t events; // EPOLLIN and so on
};

#define CLINUX_READABLE 0x001u
#define CLINUX_WRITABLE 0x004u
#define CLINUX_ERROR 0x008u
#define CLINUX_HANGUP 0x010u
#define CLINUX_PEER_FINISHED 0x2000u
#define CLINUX_EDGE 0x80000000u
#define CLINUX_EVENTS_MAX 128

int clinux_epoll_create(void);
int clinux_epoll_add(int epoll, int fd, uint32_t events, uint64_t key);
int clinux_epoll_modify(int epoll, int fd, uint32_t events, uint64_t key);
int clinux_epoll_remove(int epoll, int fd);
// Waits for at most CLINUX_EVENTS_MAX events; a negative timeout waits for ever. EINTR counts as no event.
int clinux_epoll_wait(int epoll, struct clinux_event *events, int64_t timeout_nanoseconds);
int clinux_eventfd(void);
int clinux_eventfd_signal(int fd);
// Names the calling thread (15 characters at most) and blocks the signals that the process handles elsewhere.
void clinux_thread_setup(const char *name);

// Sockets; all non-blocking and close-on-exec ------------------------------------------------------------------------

int clinux_udp_socket(bool six);
int clinux_tcp_socket(bool six);
int clinux_unix_socket(void);
int clinux_bind(int fd, const struct clinux_address *address);
int clinux_connect(int fd, const struct clinux_address *address);
// The path is checked for its length: ENAMETOOLONG. The socket file gets mode 0600 from the start.
int clinux_bind_unix(int fd, const char *path);
int clinux_connect_unix(int fd, const char *path);
int clinux_listen(int fd, int backlog);
// A new descriptor; `peer` has family 0 for Unix sockets.
int clinux_accept(int fd, struct clinux_address *peer);
int clinux_local_address(int fd, struct clinux_address *address);
int clinux_peer_address(int fd, struct clinux_address *address);
// The pending error of the socket as a positive errno, which this call clears.
int clinux_take_error(int fd);
int clinux_set_no_delay(int fd);
int clinux_set_reuse_address(int fd);
int clinux_set_v6_only(int fd, bool on);
int clinux_set_linger_zero(int fd);
int clinux_shutdown_write(int fd);
int clinux_peer_uid(int fd, uid_t *uid);
ssize_t clinux_readv(int fd, const struct iovec *vectors, int count);
// Never raises SIGPIPE.
ssize_t clinux_send(int fd, const void *bytes, size_t count);
ssize_t clinux_sendv(int fd, const struct iovec *vectors, size_t count);

// UDP in batches -----------------------------------------------------------------------------------------------------

// Asks for packet information, TOS bytes and GRO, forbids fragmentation and sizes the buffers; what the kernel cannot
// do is left out, except packet information, without which replies could leave from a wrong address.
int clinux_udp_setup(int fd, bool six, int buffer_bytes);
// Whether the kernel knows UDP_SEGMENT.
bool clinux_udp_can_segment(int fd);

struct clinux_receiver;
struct clinux_received {
    unsigned char *bytes;
    size_t count;
    size_t segment; // the size of all datagrams in `bytes` but the last
    struct clinux_address local; // family 0 when the kernel did not tell
    struct clinux_address remote;
    uint8_t ecn;
};
// NULL when memory is short.
struct clinux_receiver *clinux_receiver_create(unsigned messages, size_t bytes_each);
void clinux_receiver_destroy(struct clinux_receiver *receiver);
// The number of messages that came.
int clinux_receiver_receive(struct clinux_receiver *receiver, int fd);
// False for a message that is not usable: truncated or without an IP sender.
bool clinux_receiver_message(struct clinux_receiver *receiver, unsigned index, struct clinux_received *message);

struct clinux_sender;
struct clinux_sender *clinux_sender_create(unsigned messages, bool six);
void clinux_sender_destroy(struct clinux_sender *sender);
// Sets message `index`; `segment` 0 sends one datagram, otherwise the kernel cuts `bytes` into datagrams of that size.
void clinux_sender_set(
    struct clinux_sender *sender, unsigned index, void *bytes, size_t count, size_t segment,
    const struct clinux_address *local, const struct clinux_address *remote, uint8_t ecn);
// Sends the first `count` messages; the number that the kernel took, or the negated errno of the first one.
int clinux_sender_send(struct clinux_sender *sender, int fd, unsigned count);

// The machine --------------------------------------------------------------------------------------------------------

// The user of the local TCP socket that is bound to `source` and connected to `destination`.
// ENOENT: there is none, or it is closed by its process.
int clinux_tcp_user(const struct clinux_address *source, const struct clinux_address *destination, uid_t *uid);
// Calls `found` for each address of each interface.
int clinux_interfaces(
    void *context,
    void (*found)(void *context, const char *name, bool up, bool loopback, const struct clinux_address *address));
// Fills the buffer from the kernel's generator; ends the process if there is none, as nothing secret can be made then.
void clinux_random(void *bytes, size_t count);

// Files --------------------------------------------------------------------------------------------------------------

// Takes the exclusive lock without waiting: EWOULDBLOCK when another open file has it.
int clinux_try_lock(int fd);
// Makes and opens a new file of mode 0600 whose name replaces the XXXXXX at the end of `path`.
int clinux_make_temporary(char *path);

#endif
