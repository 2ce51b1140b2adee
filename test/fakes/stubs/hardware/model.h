/* What each model of GPU has when nothing is scripted. */
#ifndef STUB_HARDWARE_MODEL_H
#define STUB_HARDWARE_MODEL_H

#include "hardware.h"

struct setting {
    const char *key;
    const char *value;
};

struct model {
    const char *name;
    const struct setting *settings; /* up to a key of NULL */
    const struct mig_profile *profiles;
    unsigned profile_count;
};

/* The model of a name, or the first where the name is NULL or unknown. */
const struct model *model_named(const char *name);

/* What all models share; a model's own settings go before. */
extern const struct setting model_common[];

/* What the node has, apart from its GPUs. */
extern const struct setting model_node[];

/* What each NVLink, and what each partition has. */
extern const struct setting model_link[];
extern const struct setting model_partition[];

#endif
