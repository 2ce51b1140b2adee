/* The fields of libdcgm: their types, where they are read, and the quantity of
 * the scripted hardware that they report. */
#ifndef STUB_DCGM_FIELDS_H
#define STUB_DCGM_FIELDS_H

#include <stdbool.h>
#include <stdint.h>

#include "dcgm_fields.h"

enum source {
    UNSUPPORTED, /* known to the engine, not to the hardware: blank */
    FROM_TEXT,
    FROM_NODE,   /* a text of the node */
    FROM_NUMBER,  /* times scale */
    FROM_NVLINK5, /* a number that NVLink 5 and newer have */
    FROM_LINKS,   /* the sum over all NVLinks, of those before NVLink 5 */
    FROM_LINKS5,  /* likewise, from NVLink 5 on */
    FROM_RATE,    /* a counter's average per second over the watch interval, times scale */
    FROM_PROFILE, /* a ratio that needs two samples, as all of the profiler's */
    FROM_EVENTS,  /* observed, not sampled */
    FROM_ENGINE,  /* what the engine makes of several things */
};

struct field {
    uint16_t id;
    char type; /* DCGM_FT_… */
    uint8_t level; /* the finest dcgm_field_entity_group_t that has a value of its own */
    uint16_t since; /* release that brought it, 405 for 4.5, as far as is known */
    enum source source;
    const char *key;
    double scale;
};

/* A field that the newest release knows, or NULL. */
const struct field *field_find(uint16_t id);
/* Whether the release that is scripted knows it. */
bool field_known(uint16_t id);
/* Whether it takes the profiler's counters. */
bool field_profiling(uint16_t id);
/* Whether another process holds those (node.dcgm.profiler = other). */
bool profiler_taken(void);

dcgm_field_meta_p field_metadata(uint16_t id);

#endif
