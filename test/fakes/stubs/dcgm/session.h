/* The connections of this process: one embedded engine at most, and any
 * number of connections to host engines. */
#ifndef STUB_DCGM_SESSION_H
#define STUB_DCGM_SESSION_H

#include <stdbool.h>

#include "calls.h"
#include "dcgm_structs.h"
#include "wire.h"

dcgmReturn_t session_init(void);
dcgmReturn_t session_shutdown(void);

dcgmReturn_t session_embed(bool automatic, dcgmHandle_t *handle);
dcgmReturn_t session_stop(dcgmHandle_t handle);

/* Connects to host:port, tcp://host:port, or unix:///path; path alone if it is
 * said to be one. */
dcgmReturn_t session_connect(const char *address, bool path, bool persist, unsigned timeout_ms, dcgmHandle_t *handle);
dcgmReturn_t session_disconnect(dcgmHandle_t handle);

/* Asks the engine behind a handle. The caller frees the reply, also after an
 * error; it is freed for NULL. */
dcgmReturn_t session_call(dcgmHandle_t handle, enum call call, struct wire *request, struct wire *reply);

#endif
