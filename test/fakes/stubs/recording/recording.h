/* A recording in memory. It is not changed once it has been loaded. */
#ifndef RECORDING_RECORDING_H
#define RECORDING_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text.h"

/* One answer. */
struct answer {
    int64_t time;      /* when it was asked for, in ns since the start */
    unsigned status;
    const char *words; /* of the output; ends with the line */
    unsigned long line;
    uint32_t key;
};

/* The answers to one key, in the order of time. */
struct answers {
    const struct answer *first;
    size_t count;
};

struct recording {
    char *bytes;
    int64_t wall; /* Unix microseconds at the start */
    struct answer *all;
    size_t count, capacity;
    struct key *keys; /* a hash table */
    size_t key_count, key_capacity;
    unsigned long line; /* that is being read */
};

/* Loads a file. False: why says what is wrong with it, and where. */
bool recording_load(struct recording *recording, const char *path, struct text *why);

/* The answers to a call as write_call writes its key. Other keys are:
 * "lacks <function>", "event", and of an element the call's key with the
 * element's after it. */
struct answers recording_find(const struct recording *recording, const char *key);

/* The last answer until a time, or else the first one. NULL: there is none. */
const struct answer *answer_at(struct answers answers, int64_t time);

#endif
