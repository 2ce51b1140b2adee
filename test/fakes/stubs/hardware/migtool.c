/* stub-mig: makes and removes MIG instances of the scripted GPUs, as an
 * administrator would.
 *
 *   stub-mig create <gpu> <profile> <start>   prints "<gi> <ci>"; start -1: anywhere
 *   stub-mig compute <gpu> <gi> <slices>      prints "<ci>" of one more in an instance
 *   stub-mig destroy <gpu> <gi>               with its compute instances
 *   stub-mig mode <gpu> <0|1>
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hardware.h"

static const char *const reasons[] = {
    [MIG_DONE] = "done",
    [MIG_DISABLED] = "MIG mode is off",
    [MIG_UNKNOWN] = "no such GPU, profile, placement or instance",
    [MIG_FULL] = "no room for it",
    [MIG_BUSY] = "in use",
    [MIG_FAILED] = "the state cannot be written",
};

static int end(enum mig_result result)
{
    if (result != MIG_DONE)
        fprintf(stderr, "%s\n", reasons[result]);
    return result != MIG_DONE;
}

/* A profile "1c.3g.40gb" asks for a compute instance with a part of its GPU
 * instance. */
static int create(int gpu, const char *name, int start)
{
    unsigned count, gi, ci, slices = 0;
    int part = 0;
    if (sscanf(name, "%uc.%n", &slices, &part) == 1 && part > 0)
        name += part;
    else
        slices = 0;
    const struct mig_profile *profiles = hardware_mig_profiles(gpu, &count);
    for (unsigned i = 0; i < count; i++) {
        if (strcmp(profiles[i].name, name))
            continue;
        enum mig_result result = MIG_DONE;
        if (!hardware_mig_enabled(gpu))
            result = hardware_mig_set_mode(gpu, true);
        if (result == MIG_DONE)
            result = hardware_mig_create(gpu, profiles[i].id, start, &gi);
        if (result == MIG_DONE)
            result = hardware_mig_create_compute(gpu, gi, slices ? slices : profiles[i].slices, 0, &ci);
        if (result == MIG_DONE)
            printf("%u %u\n", gi, ci);
        return end(result);
    }
    return end(MIG_UNKNOWN);
}

static int compute(int gpu, unsigned gi, unsigned slices)
{
    unsigned ci;
    enum mig_result result = hardware_mig_create_compute(gpu, gi, slices, -1, &ci);
    if (result == MIG_DONE)
        printf("%u\n", ci);
    return end(result);
}

static int destroy(int gpu, unsigned gi)
{
    struct mig_instance instances[MIG_MOST_INSTANCES];
    unsigned count = hardware_mig_instances(gpu, instances);
    for (unsigned i = 0; i < count; i++)
        for (unsigned c = 0; instances[i].id == gi && c < instances[i].compute_count; c++)
            hardware_mig_destroy_compute(gpu, gi, instances[i].compute[c].id);
    return end(hardware_mig_destroy(gpu, gi));
}

int main(int argc, char **argv)
{
    if (!hardware_present()) {
        fprintf(stderr, "no hardware is scripted: set DRA_STUB_HARDWARE\n");
        return 1;
    }
    if (argc == 5 && !strcmp(argv[1], "create"))
        return create(atoi(argv[2]), argv[3], atoi(argv[4]));
    if (argc == 5 && !strcmp(argv[1], "compute"))
        return compute(atoi(argv[2]), (unsigned)atoi(argv[3]), (unsigned)atoi(argv[4]));
    if (argc == 4 && !strcmp(argv[1], "destroy"))
        return destroy(atoi(argv[2]), (unsigned)atoi(argv[3]));
    if (argc == 4 && !strcmp(argv[1], "mode"))
        return end(hardware_mig_set_mode(atoi(argv[2]), atoi(argv[3])));
    fprintf(stderr, "usage: %s create <gpu> <profile> <start> | compute <gpu> <gi> <slices> | destroy <gpu> <gi> | mode <gpu> <0|1>\n",
            argv[0]);
    return 2;
}
