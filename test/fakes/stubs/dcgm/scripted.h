/* What a host engine learns of the scripted GPUs, in the terms of libdcgm: the
 * only part that knows hardware.h. */
#ifndef STUB_DCGM_SCRIPTED_H
#define STUB_DCGM_SCRIPTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether there is anything to report. */
bool scripted_present(void);
/* Holds the device files of all GPUs open, and closes them. */
void scripted_attach(void);
void scripted_detach(void);
/* Changes whenever GPUs or partitions may have. */
uint64_t scripted_generation(void);
/* How many GPUs the node has had; those that have gone are among them. */
unsigned scripted_gpus(void);
bool scripted_absent(unsigned gpu);
bool scripted_lost(unsigned gpu);

/* A GPU, or one of its GPU instances, or a compute instance of one. Instances
 * that it is none of are -1. */
struct place {
    unsigned gpu;
    int gi;
    int ci;
};

/* A quantity. False: the hardware has none. */
bool scripted_number(struct place place, const char *key, double *value);
bool scripted_integer(struct place place, const char *key, int64_t *value);
bool scripted_text(unsigned gpu, const char *key, char *text, size_t size);
/* A quantity of the node. */
bool scripted_node_text(const char *key, char *text, size_t size);
/* What hardware.conf says, if anything, of gpu.<gpu>[.mig.<gi>[.<ci>]].<key>,
 * and of node.<key>. */
bool scripted_line(struct place place, const char *key, char *text, size_t size);
bool scripted_node_line(const char *key, char *text, size_t size);

/* A compute instance; or, with ci -1, a GPU instance that has none. */
struct partition {
    int gi;
    int ci;
    unsigned profile;
    unsigned slices;
    unsigned compute_profile;
    unsigned compute_slices;
    char uuid[96]; /* of the MIG device */
    char name[96]; /* of the MIG device: model and profile */
};

/* The partitions of a GPU, by GPU instance. */
unsigned scripted_partitions(unsigned gpu, struct partition *partitions, unsigned most);
bool scripted_mig(unsigned gpu);

struct xid {
    unsigned gpu;
    int gi; /* -1: of the whole GPU */
    int ci;
    unsigned code;
};

/* The XIDs from number first on, the first ever being 0. */
size_t scripted_xids(size_t first, struct xid *xids, size_t most);

#endif
