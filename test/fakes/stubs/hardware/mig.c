/* The MIG instances of the node. mig.state has lines
 *
 *   mode <gpu> <0|1>
 *   gi <gpu> <gi> <profile id> <start>
 *   ci <gpu> <gi> <ci> <slices> <start>
 *
 * and is replaced as a whole, under a lock on mig.lock, so that drivers and
 * agents in several processes agree. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "store.h"

static const struct mig_profile *profile_of(int gpu, unsigned id)
{
    const struct model *model = table_model(store.table, gpu);
    for (unsigned i = 0; i < model->profile_count; i++)
        if (model->profiles[i].id == id)
            return &model->profiles[i];
    return NULL;
}

const struct mig_profile *hardware_mig_profiles(int gpu, unsigned *count)
{
    store_enter();
    const struct model *model = table_model(store.table, gpu);
    store_leave();
    *count = model->profile_count;
    return model->profiles;
}

static struct mig_instance *instance_of(int gpu, unsigned gi)
{
    struct gpu_instances *mig = &store.mig[gpu];
    for (unsigned i = 0; i < mig->count; i++)
        if (mig->instances[i].id == gi)
            return &mig->instances[i];
    return NULL;
}

static bool enabled(int gpu)
{
    if (gpu < 0 || gpu >= store.table->gpus)
        return false;
    if (store.mig[gpu].mode_set)
        return store.mig[gpu].mode;
    const struct value *mode = table_find(store.table, gpu, "mig.mode");
    return mode && mode->numeric && mode->integer == 1;
}

/* Puts an instance at its place in the order of ids. */
static struct mig_instance *insert(int gpu, struct mig_instance instance)
{
    struct gpu_instances *mig = &store.mig[gpu];
    if (mig->count == MIG_MOST_INSTANCES)
        return NULL;
    unsigned at = mig->count++;
    for (; at > 0 && mig->instances[at - 1].id > instance.id; at--)
        mig->instances[at] = mig->instances[at - 1];
    mig->instances[at] = instance;
    return &mig->instances[at];
}

static bool insert_compute(struct mig_instance *instance, struct mig_compute compute)
{
    if (!instance || instance->compute_count == MIG_MOST_COMPUTE)
        return false;
    unsigned at = instance->compute_count++;
    for (; at > 0 && instance->compute[at - 1].id > compute.id; at--)
        instance->compute[at] = instance->compute[at - 1];
    instance->compute[at] = compute;
    return true;
}

static void take_line(const char *line)
{
    int gpu, on;
    unsigned gi, id, a, b;
    if (sscanf(line, "mode %d %d", &gpu, &on) == 2 && gpu >= 0 && gpu < HARDWARE_MOST_GPUS) {
        store.mig[gpu].mode_set = true;
        store.mig[gpu].mode = on;
    } else if (sscanf(line, "gi %d %u %u %u", &gpu, &gi, &a, &b) == 4 && gpu >= 0 && gpu < HARDWARE_MOST_GPUS) {
        const struct mig_profile *profile = profile_of(gpu, a);
        if (profile)
            insert(gpu, (struct mig_instance){.id = gi, .profile = profile, .placement = {b, profile->placements[0].size}});
    } else if (sscanf(line, "ci %d %u %u %u %u", &gpu, &gi, &id, &a, &b) == 5 && gpu >= 0 && gpu < HARDWARE_MOST_GPUS) {
        insert_compute(instance_of(gpu, gi), (struct mig_compute){id, a, b});
    }
}

void mig_take(char *text)
{
    memset(store.mig, 0, sizeof store.mig);
    for (char *line; (line = strsep(&text, "\n"));)
        take_line(line);
}

static void write_state(FILE *file)
{
    for (int gpu = 0; gpu < HARDWARE_MOST_GPUS; gpu++) {
        const struct gpu_instances *mig = &store.mig[gpu];
        if (mig->mode_set)
            fprintf(file, "mode %d %d\n", gpu, mig->mode);
        for (unsigned i = 0; i < mig->count; i++) {
            const struct mig_instance *instance = &mig->instances[i];
            fprintf(file, "gi %d %u %u %u\n", gpu, instance->id, instance->profile->id, instance->placement.start);
            for (unsigned c = 0; c < instance->compute_count; c++)
                fprintf(file, "ci %d %u %u %u %u\n", gpu, instance->id, instance->compute[c].id,
                        instance->compute[c].slices, instance->compute[c].start);
        }
    }
}

static bool keep_state(void)
{
    char path[sizeof store.folder + 32], draft[sizeof store.folder + 32];
    snprintf(path, sizeof path, "%s/mig.state", store.folder);
    snprintf(draft, sizeof draft, "%s/mig.draft", store.folder);
    FILE *file = fopen(draft, "we");
    if (!file)
        return false;
    write_state(file);
    if (fclose(file) || rename(draft, path)) {
        unlink(draft);
        return false;
    }
    store_look();
    return true;
}

/* Begins a change: no other change begins until change_end. */
static int change_begin(void)
{
    char path[sizeof store.folder + 32];
    store_enter();
    snprintf(path, sizeof path, "%s/mig.lock", store.folder);
    int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (lock >= 0 && flock(lock, LOCK_EX)) {
        close(lock);
        lock = -1;
    }
    if (lock >= 0)
        store_look();
    return lock;
}

static enum mig_result change_end(int lock, enum mig_result result)
{
    if (result == MIG_DONE && !keep_state()) {
        char *text = store_read("mig.state");
        mig_take(text);
        free(text);
        result = MIG_FAILED;
    }
    close(lock);
    store_leave();
    return result;
}

static enum mig_result change_failed(void)
{
    store_leave();
    return MIG_FAILED;
}

unsigned hardware_mig_instances(int gpu, struct mig_instance instances[MIG_MOST_INSTANCES])
{
    unsigned count = 0;
    store_enter();
    if (enabled(gpu)) {
        count = store.mig[gpu].count;
        memcpy(instances, store.mig[gpu].instances, count * sizeof *instances);
    }
    store_leave();
    return count;
}

bool hardware_mig_enabled(int gpu)
{
    store_enter();
    bool on = enabled(gpu);
    store_leave();
    return on;
}

enum mig_result hardware_mig_set_mode(int gpu, bool on)
{
    int lock = change_begin();
    if (lock < 0)
        return change_failed();
    if (gpu < 0 || gpu >= store.table->gpus)
        return change_end(lock, MIG_UNKNOWN);
    if (!on && store.mig[gpu].count)
        return change_end(lock, MIG_BUSY);
    store.mig[gpu].mode_set = true;
    store.mig[gpu].mode = on;
    return change_end(lock, MIG_DONE);
}

static bool room(int gpu, struct mig_placement place)
{
    for (unsigned i = 0; i < store.mig[gpu].count; i++) {
        struct mig_placement taken = store.mig[gpu].instances[i].placement;
        if (place.start < taken.start + taken.size && taken.start < place.start + place.size)
            return false;
    }
    return true;
}

static unsigned with_profile(int gpu, const struct mig_profile *profile)
{
    unsigned count = 0;
    for (unsigned i = 0; i < store.mig[gpu].count; i++)
        count += store.mig[gpu].instances[i].profile == profile;
    return count;
}

/* The driver numbers GPU instances as the nodes of a binary tree over the
 * memory slices: 0 is the whole, 1 and 2 the halves, 3 to 6 the quarters, 7 to
 * 14 the eighths. */
static unsigned instance_id(struct mig_placement place)
{
    return 8 / place.size - 1 + place.start / place.size;
}

static enum mig_result create(int gpu, unsigned profile_id, int start, unsigned *gi)
{
    if (!enabled(gpu))
        return MIG_DISABLED;
    const struct mig_profile *profile = profile_of(gpu, profile_id);
    if (!profile)
        return MIG_UNKNOWN;
    if (with_profile(gpu, profile) >= profile->instances)
        return MIG_FULL;
    bool known = false;
    for (unsigned i = 0; i < profile->placement_count; i++) {
        struct mig_placement place = profile->placements[i];
        if (start >= 0 && place.start != (unsigned)start)
            continue;
        known = true;
        if (!room(gpu, place))
            continue;
        *gi = instance_id(place);
        insert(gpu, (struct mig_instance){.id = *gi, .profile = profile, .placement = place});
        return MIG_DONE;
    }
    return known ? MIG_FULL : MIG_UNKNOWN;
}

enum mig_result hardware_mig_create(int gpu, unsigned profile_id, int start, unsigned *gi)
{
    int lock = change_begin();
    return lock < 0 ? change_failed() : change_end(lock, create(gpu, profile_id, start, gi));
}

static enum mig_result destroy(int gpu, unsigned gi)
{
    struct mig_instance *instance = enabled(gpu) ? instance_of(gpu, gi) : NULL;
    if (!instance)
        return MIG_UNKNOWN;
    if (instance->compute_count)
        return MIG_BUSY;
    struct gpu_instances *mig = &store.mig[gpu];
    memmove(instance, instance + 1, (size_t)(mig->instances + mig->count - instance - 1) * sizeof *instance);
    mig->count--;
    return MIG_DONE;
}

enum mig_result hardware_mig_destroy(int gpu, unsigned gi)
{
    int lock = change_begin();
    return lock < 0 ? change_failed() : change_end(lock, destroy(gpu, gi));
}

static bool compute_room(const struct mig_instance *instance, unsigned start, unsigned slices)
{
    if (start + slices > instance->profile->slices)
        return false;
    for (unsigned i = 0; i < instance->compute_count; i++) {
        const struct mig_compute *taken = &instance->compute[i];
        if (start < taken->start + taken->slices && taken->start < start + slices)
            return false;
    }
    return true;
}

static unsigned free_compute_id(const struct mig_instance *instance)
{
    unsigned id = 0;
    for (unsigned i = 0; i < instance->compute_count && instance->compute[i].id == id; i++)
        id++;
    return id;
}

static enum mig_result create_compute(int gpu, unsigned gi, unsigned slices, int start, unsigned *ci)
{
    struct mig_instance *instance = enabled(gpu) ? instance_of(gpu, gi) : NULL;
    if (!instance || slices == 0 || slices > instance->profile->slices)
        return MIG_UNKNOWN;
    unsigned first = start < 0 ? 0 : (unsigned)start, last = start < 0 ? instance->profile->slices - slices : first;
    for (unsigned at = first; at <= last; at++) {
        if (!compute_room(instance, at, slices))
            continue;
        *ci = free_compute_id(instance);
        insert_compute(instance, (struct mig_compute){*ci, slices, at});
        return MIG_DONE;
    }
    return MIG_FULL;
}

enum mig_result hardware_mig_create_compute(int gpu, unsigned gi, unsigned slices, int start, unsigned *ci)
{
    int lock = change_begin();
    return lock < 0 ? change_failed() : change_end(lock, create_compute(gpu, gi, slices, start, ci));
}

static enum mig_result destroy_compute(int gpu, unsigned gi, unsigned ci)
{
    struct mig_instance *instance = enabled(gpu) ? instance_of(gpu, gi) : NULL;
    for (unsigned i = 0; instance && i < instance->compute_count; i++)
        if (instance->compute[i].id == ci) {
            struct mig_compute *gone = &instance->compute[i];
            memmove(gone, gone + 1, (instance->compute_count - i - 1) * sizeof *gone);
            instance->compute_count--;
            return MIG_DONE;
        }
    return MIG_UNKNOWN;
}

enum mig_result hardware_mig_destroy_compute(int gpu, unsigned gi, unsigned ci)
{
    int lock = change_begin();
    return lock < 0 ? change_failed() : change_end(lock, destroy_compute(gpu, gi, ci));
}

bool hardware_mig_uuid(int gpu, unsigned gi, unsigned ci, char text[HARDWARE_TEXT])
{
    store_enter();
    const struct mig_instance *instance = enabled(gpu) ? instance_of(gpu, gi) : NULL;
    const struct value *uuid = table_find(store.table, gpu, "uuid");
    bool found = false;
    for (unsigned i = 0; instance && uuid && i < instance->compute_count; i++)
        found = found || instance->compute[i].id == ci;
    if (found) {
        char name[HARDWARE_TEXT + 32];
        snprintf(name, sizeof name, "%s/%u/%u", uuid->text, gi, ci);
        table_uuid("MIG-", name, text);
    }
    store_leave();
    return found;
}
