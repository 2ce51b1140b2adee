/* Values of MIG instances. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store.h"

static const struct mig_instance *instance_of(int gpu, unsigned gi)
{
    const struct gpu_instances *mig = gpu >= 0 ? &store.mig[gpu] : NULL;
    for (unsigned i = 0; mig && i < mig->count; i++)
        if (mig->instances[i].id == gi)
            return &mig->instances[i];
    return NULL;
}

/* What an instance has though nothing is scripted for it. */
static bool default_value(int gpu, const struct mig_instance *instance, const char *key, struct value *value)
{
    char text[HARDWARE_TEXT];
    if (!strcmp(key, "memory.total")) {
        snprintf(text, sizeof text, "%llu", (unsigned long long)instance->profile->memory_mib << 20);
        *value = value_parse(text);
        return true;
    }
    for (const struct setting *setting = model_partition; setting->key; setting++)
        if (!strcmp(setting->key, key)) {
            *value = value_parse(setting->value);
            return true;
        }
    if (strncmp(key, "profiling.", 10) || value_none(table_find(store.table, gpu, key)))
        return false;
    *value = value_parse("0");
    return true;
}

bool partition_value(int gpu, const char *key, struct value *value, bool *found)
{
    if (strncmp(key, "mig.", 4) || !isdigit((unsigned char)key[4]))
        return false;
    const struct value *scripted = table_find(store.table, gpu, key);
    char *rest, whole[HARDWARE_TEXT];
    unsigned gi = (unsigned)strtoul(key + 4, &rest, 10);
    *found = false;
    if (*rest++ != '.')
        return true;
    if (isdigit((unsigned char)*rest)) {
        strtoul(rest, &rest, 10);
        if (*rest++ != '.')
            return true;
    }
    if (!scripted) {
        snprintf(whole, sizeof whole, "mig.%u.%s", gi, rest);
        scripted = table_find(store.table, gpu, whole);
    }
    if (scripted)
        *value = *scripted;
    const struct mig_instance *instance = instance_of(gpu, gi);
    *found = scripted || (instance && default_value(gpu, instance, rest, value));
    return true;
}
