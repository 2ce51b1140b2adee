/* Which release of DCGM is scripted (node.dcgm.version). */
#ifndef STUB_DCGM_VERSION_H
#define STUB_DCGM_VERSION_H

#include <stddef.h>

/* The build's description, as dcgmVersionInfo gives it. */
void version_text(char *text, size_t size);
/* 406 for 4.6.1. */
unsigned version_number(void);

#endif
