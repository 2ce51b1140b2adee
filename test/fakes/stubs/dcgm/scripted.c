#include "scripted.h"

#include <stdio.h>
#include <string.h>

#include "hardware.h"

bool scripted_present(void) { return hardware_present(); }

void scripted_attach(void)
{
    hardware_attach(HARDWARE_NODE);
    for (int gpu = 0; gpu < hardware_gpus(); gpu++)
        if (hardware_there(gpu))
            hardware_attach(gpu);
}

void scripted_detach(void) { hardware_detach(); }

uint64_t scripted_generation(void) { return hardware_generation(); }
unsigned scripted_gpus(void) { return (unsigned)hardware_gpus(); }
bool scripted_absent(unsigned gpu) { return !hardware_there((int)gpu); }
bool scripted_lost(unsigned gpu) { return hardware_lost((int)gpu); }
bool scripted_mig(unsigned gpu) { return hardware_mig_enabled((int)gpu); }

/* The key as hardware.conf has it for a place. */
static const char *key_of(struct place place, const char *key, char buffer[HARDWARE_TEXT])
{
    if (place.gi < 0)
        return key;
    if (place.ci < 0)
        snprintf(buffer, HARDWARE_TEXT, "mig.%d.%s", place.gi, key);
    else
        snprintf(buffer, HARDWARE_TEXT, "mig.%d.%d.%s", place.gi, place.ci, key);
    return buffer;
}

bool scripted_number(struct place place, const char *key, double *value)
{
    char buffer[HARDWARE_TEXT];
    return hardware_number((int)place.gpu, key_of(place, key, buffer), value);
}

bool scripted_integer(struct place place, const char *key, int64_t *value)
{
    char buffer[HARDWARE_TEXT];
    return hardware_integer((int)place.gpu, key_of(place, key, buffer), value);
}

static bool copy_text(int gpu, const char *key, char *text, size_t size)
{
    char value[HARDWARE_TEXT];
    if (!hardware_text(gpu, key, value))
        return false;
    snprintf(text, size, "%s", value);
    return true;
}

bool scripted_text(unsigned gpu, const char *key, char *text, size_t size)
{
    return copy_text((int)gpu, key, text, size);
}

bool scripted_node_text(const char *key, char *text, size_t size)
{
    return copy_text(HARDWARE_NODE, key, text, size);
}

/* Keys that begin with "dcgm." have no defaults: what they say is a line. */
bool scripted_line(struct place place, const char *key, char *text, size_t size)
{
    char buffer[HARDWARE_TEXT];
    return copy_text((int)place.gpu, key_of(place, key, buffer), text, size);
}

bool scripted_node_line(const char *key, char *text, size_t size)
{
    return copy_text(HARDWARE_NODE, key, text, size);
}

/* NVML's number of a compute instance profile of so many slices. */
static unsigned compute_profile(unsigned slices)
{
    switch (slices) {
    case 1:
    case 2:
    case 3:
    case 4:
        return slices - 1;
    case 7:
        return 4;
    case 8:
        return 5;
    default:
        return 6; /* of six slices */
    }
}

static void describe(unsigned gpu, const struct mig_instance *instance, const struct mig_compute *compute,
                     struct partition *partition)
{
    char model[HARDWARE_TEXT] = "", uuid[HARDWARE_TEXT] = "";
    *partition = (struct partition){
        .gi = (int)instance->id,
        .ci = -1,
        .profile = instance->profile->id,
        .slices = instance->profile->slices,
    };
    if (!compute)
        return;
    partition->ci = (int)compute->id;
    partition->compute_profile = compute_profile(compute->slices);
    partition->compute_slices = compute->slices;
    hardware_text((int)gpu, "name", model);
    hardware_mig_uuid((int)gpu, instance->id, compute->id, uuid);
    snprintf(partition->uuid, sizeof partition->uuid, "%.95s", uuid);
    if (compute->slices == instance->profile->slices)
        snprintf(partition->name, sizeof partition->name, "%.60s MIG %.30s", model, instance->profile->name);
    else
        snprintf(partition->name, sizeof partition->name, "%.60s MIG %uc.%.26s", model, compute->slices, instance->profile->name);
}

unsigned scripted_partitions(unsigned gpu, struct partition *partitions, unsigned most)
{
    struct mig_instance instances[MIG_MOST_INSTANCES];
    unsigned count = 0, instance_count = hardware_mig_instances((int)gpu, instances);
    for (unsigned i = 0; i < instance_count; i++) {
        const struct mig_instance *instance = &instances[i];
        if (instance->compute_count == 0 && count < most)
            describe(gpu, instance, NULL, &partitions[count++]);
        for (unsigned c = 0; c < instance->compute_count && count < most; c++)
            describe(gpu, instance, &instance->compute[c], &partitions[count++]);
    }
    return count;
}

size_t scripted_xids(size_t first, struct xid *xids, size_t most)
{
    struct hardware_xid found[64];
    size_t count = hardware_xids(first, found, most < 64 ? most : 64);
    for (size_t i = 0; i < count; i++)
        xids[i] = (struct xid){
            .gpu = (unsigned)found[i].gpu, .gi = found[i].gi, .ci = found[i].ci, .code = (unsigned)found[i].code};
    return count;
}
