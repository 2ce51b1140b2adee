/* What hardware.conf says that goes wrong in libdcgm's functions. */
#ifndef STUB_DCGM_FAULTS_H
#define STUB_DCGM_FAULTS_H

/* Blocks while node.dcgm.hang.<function> is there; then what
 * node.dcgm.return.<function> says, 0 (DCGM_ST_OK) for nothing. */
int fault(const char *function);

#endif
