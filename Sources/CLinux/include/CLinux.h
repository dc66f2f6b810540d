#ifndef CULVERT_CLINUX_H
#define CULVERT_CLINUX_H
#endif
