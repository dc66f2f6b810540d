#ifndef CLINUX_GETOPT_H
#define CLINUX_GETOPT_H

#include <getopt.h>

/// One step of getopt_long(3). The C interface answers through mutable globals, which Swift 6 does not let through.
struct clinux_getopt_step {
    /// What getopt_long returned: an option's value, 1 for an operand (in "-" mode), '?', ':' or -1 at the end.
    int code;
    /// The option's argument or the operand; borrowed from argv.
    const char *argument;
    /// The offending option's value after '?' or ':'; 0 when it is an unknown long option.
    int offender;
    /// The next element of argv to be scanned.
    int next;
};

/// Advances by one option. Not thread-safe: the caller serialises whole scans. `restart` begins a new argv.
static inline struct clinux_getopt_step clinux_getopt_next(
    int argc, char *const *argv, const char *short_options, const struct option *long_options, int restart) {
    opterr = 0;
    if (restart) optind = 0;
    optopt = 0;
    optarg = 0;
    struct clinux_getopt_step step;
    step.code = getopt_long(argc, argv, short_options, long_options, 0);
    step.argument = optarg;
    step.offender = optopt;
    step.next = optind;
    return step;
}

#endif
