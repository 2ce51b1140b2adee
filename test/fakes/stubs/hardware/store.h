/* What the parts of the hardware share: what has been read of its folder. All
 * of it is guarded by store.lock, which the caller of any function here but
 * store_enter holds. */
#ifndef STUB_HARDWARE_STORE_H
#define STUB_HARDWARE_STORE_H

#include <pthread.h>
#include <sys/stat.h>

#include "hardware.h"
#include "table.h"

/* A file as it was when it was read last. */
struct file {
    const char *name;
    struct stat seen; /* all zero where there was none */
};

struct gpu_instances {
    bool mode_set; /* MIG mode has been switched since the script began */
    bool mode;
    unsigned count;
    struct mig_instance instances[MIG_MOST_INSTANCES];
};

struct store {
    pthread_mutex_t lock;
    char folder[4096]; /* empty: none */
    int64_t looked;    /* nanoseconds, CLOCK_MONOTONIC */
    double first;      /* Unix seconds of the first look */
    uint64_t generation;
    struct table *table;
    struct gpu_instances mig[HARDWARE_MOST_GPUS];
    struct hardware_xid *xids;
    size_t xid_count;
    struct hardware_binding *bindings;
    size_t binding_count;
};

extern struct store store;

/* Locks the store and looks at the files, unless it has just been done. */
void store_enter(void);
void store_leave(void);
/* Looks at the files now. */
void store_look(void);
/* A file's text, to be freed; NULL: it cannot be read. */
char *store_read(const char *name);

/* A value with all that follows from others. False: there is none. */
bool store_value(int gpu, const char *key, struct value *value);
/* Values of NVLinks ("nvlink.<l>.…", and the totals that follow from them)
 * and of partitions ("mig.<gi>.…"). False: the key is not of that kind. */
bool link_value(int gpu, const char *key, struct value *value, bool *found);
bool partition_value(int gpu, const char *key, struct value *value, bool *found);

/* Take what mig.state, xids and bindings say. */
void mig_take(char *text);
void xids_take(char *text);
void bindings_take(char *text);

#endif
