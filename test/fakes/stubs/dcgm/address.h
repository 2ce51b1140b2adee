/* Sockets by address: host:port (port 5555 if there is none), tcp://host:port,
 * unix:///path. */
#ifndef STUB_DCGM_ADDRESS_H
#define STUB_DCGM_ADDRESS_H

#include <stdbool.h>

/* A connected socket, or -1. */
int address_connect(const char *address, bool path, unsigned timeout_ms);
/* A listening socket, or -1. A socket file that is left of an engine that died
 * is replaced. */
int address_listen(const char *address);
/* Has a socket send what it is given at once. */
void address_hurry(int fd);
/* The port that a listening TCP socket has, 0 for others. */
unsigned address_port(int fd);

#endif
