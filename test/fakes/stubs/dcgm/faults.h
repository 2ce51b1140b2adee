/* What hardware.conf says that goes wrong in libdcgm's functions. */
#ifndef STUB_DCGM_FAULTS_H
#define STUB_DCGM_FAULTS_H

/* Blocks while node.dcgm.hang.<function> is there; then what
 * node.dcgm.return.<function> says, 0 (DCGM_ST_OK) for nothing. */
int fault(const char *function);

/* How many entries the answer of a function says that it has, by
 * node.dcgm.count.<function>: the true number without. */
long long claimed(const char *function, long long number);

/* Fills a text up, so that it has no end, if node.dcgm.unterminated.<function>
 * is there. */
void unterminate(const char *function, char *text, unsigned long size);

#endif
