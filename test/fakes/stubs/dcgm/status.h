/* libdcgm's return codes and their names. */
#ifndef STUB_DCGM_STATUS_H
#define STUB_DCGM_STATUS_H

#include <stdbool.h>

/* Reads a code as hardware.conf spells it: IN_USE, DCGM_ST_IN_USE or -34. */
bool status_parse(const char *text, int *status);

#endif
