/* Which entities there are: shared by what finds them (topology.c) and what
 * reports them (hierarchy.c). */
#ifndef STUB_DCGM_TOPOLOGY_H
#define STUB_DCGM_TOPOLOGY_H

#include "internal.h"

/* Ids of partitions are the GPU's times this, plus their place in the list of
 * the GPU's: after a reconfiguration an id may mean another partition. */
#define IDS_PER_GPU DCGM_MAX_INSTANCES_PER_GPU

struct instance {
    int gi;
    struct partition partition;
};

struct compute {
    unsigned instance; /* place in instances */
    struct partition partition;
};

struct view {
    bool lost;
    unsigned instance_count;
    unsigned compute_count;
    struct instance instances[IDS_PER_GPU];
    struct compute computes[IDS_PER_GPU];
};

struct topology {
    bool looked;
    uint64_t generation;
    unsigned gpus;
    struct view views[DCGM_MAX_NUM_DEVICES];
    bool known[DCGM_MAX_NUM_DEVICES]; /* was there when the engine started */
};

#endif
