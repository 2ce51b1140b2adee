/* A host engine: what it holds for its connections (groups, field groups,
 * watches, health watches), sampled by a thread of its own from the GPUs that
 * are scripted. It lives in the process that started it embedded, or in
 * stub-hostengine. Every function may be called from any thread. */
#ifndef STUB_DCGM_ENGINE_H
#define STUB_DCGM_ENGINE_H

#include <stdbool.h>

#include "calls.h"
#include "dcgm_structs.h"
#include "wire.h"

struct engine;

/* Starts an engine. One that is not automatic samples at dcgmUpdateAllFields
 * alone. NULL: no hardware is scripted. */
struct engine *engine_start(bool automatic);
void engine_stop(struct engine *engine);

/* A connection owns what is created through it; when it ends, all of that
 * ends, unless it persists. Numbers begin at 1. */
unsigned engine_connect(struct engine *engine, bool persist);
void engine_disconnect(struct engine *engine, unsigned connection);

/* Answers one call. Blocks for as long as node.dcgm.hang.<function> says. */
dcgmReturn_t engine_call(struct engine *engine, unsigned connection, enum call call,
                         struct wire *request, struct wire *reply);

#endif
