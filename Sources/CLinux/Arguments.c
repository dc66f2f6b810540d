#include "CLinux.h"

static int count;
static char **words;

// glibc gives main's arguments to constructors, too.
__attribute__((constructor)) static void keep(int argc, char **argv) {
    count = argc;
    words = argv;
}

int clinux_argument_count(void) { return count; }

const char *clinux_argument(int index) { return words[index]; }
