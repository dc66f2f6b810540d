#ifndef CLINUX_TERMINAL_H
#define CLINUX_TERMINAL_H

#include <wchar.h>

// wchar.h hides it without _XOPEN_SOURCE.
extern int wcwidth(wchar_t character);

/// The columns of a character on a terminal in the current locale; -1 when it cannot be printed.
static inline int clinux_column_width(unsigned int scalar) { return wcwidth((wchar_t)scalar); }

#endif
