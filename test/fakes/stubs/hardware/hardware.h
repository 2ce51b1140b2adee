/* The scripted GPUs of one node, which the stub libraries report.
 *
 * Everything lies in one folder: $DRA_STUB_HARDWARE, or else the folder
 * "hardware" beside the library or program that this is linked into.
 *
 *   hardware.conf   node.<key> = value, gpu.<i>.<key> = value; # comments
 *   mig.state       the MIG instances there are (mig.lock guards it)
 *   xids            one line for each Xid that has happened
 *   bindings        one line for each time a GPU was bound to the driver or unbound
 *   dev/            the device files, which a process that uses a GPU holds open
 *   settings        what programs have set, lines like hardware.conf's
 *   live.<pid>      what a process has open of libnvidia-ml
 *
 * so that several processes see the same GPUs. Files are looked at again when
 * stat shows another inode, size or time, and stat is called every 5 ms at
 * most. The keys, their units and defaults are in model.c and in ../README.md.
 *
 * All functions are safe for concurrent use and copy out what they return. */
#ifndef STUB_HARDWARE_H
#define STUB_HARDWARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Two stub libraries in one process have each its own. */
#pragma GCC visibility push(hidden)

#define HARDWARE_NODE (-1)   /* instead of a GPU: the keys node.<key> */
#define HARDWARE_MOST_GPUS 32
#define HARDWARE_TEXT 128    /* longest value, with its zero */

/* Whether any hardware is scripted at all. */
bool hardware_present(void);

/* Another number whenever hardware.conf or mig.state has changed. */
uint64_t hardware_generation(void);

/* How many GPUs have numbers (node.gpus), whether they are there or not. */
int hardware_gpus(void);
/* Whether a GPU is on the bus and bound to the driver (not gpu.<i>.absent, and
 * gpu.<i>.driver_link is there). */
bool hardware_there(int gpu);
/* Whether a GPU that is there has fallen off the bus (gpu.<i>.lost). */
bool hardware_lost(int gpu);

/* Values. Without a line in hardware.conf they have the defaults of the
 * model. False: the hardware does not have such a thing (no default, or the
 * line says "none").
 *
 * Values of partitions have keys mig.<gi>.<key> and, of one compute instance,
 * mig.<gi>.<ci>.<key>; a compute instance has its GPU instance's value where
 * it has none itself.
 *
 * A number may be a counter, "start+rate/s": it counts from node.epoch (Unix
 * seconds), or else from when the process looked first. */
bool hardware_text(int gpu, const char *key, char text[HARDWARE_TEXT]);
bool hardware_number(int gpu, const char *key, double *value);
bool hardware_integer(int gpu, const char *key, int64_t *value); /* exact up to 2^63; 0x… is hexadecimal */
/* Whether a value is there and not 0. */
bool hardware_flag(int gpu, const char *key);
/* How fast a counter counts per second; 0 for other numbers. */
bool hardware_rate(int gpu, const char *key, double *per_second);

/* Keeps what a program sets: from then on it is the value for all processes.
 * False: the folder cannot be written. */
bool hardware_set(int gpu, const char *key, const char *text);

/* Writes a few words about this process for tests to read: "<name>.<pid>". */
void hardware_report(const char *name, const char *text);

/* Faults: looks up "<prefix>crash.<name>" and accesses memory that is not
 * there, then "<prefix>slow.<name>" and waits for so many milliseconds, then
 * "<prefix>hang.<name>" and blocks while it is set, then
 * "<prefix>return.<name>", whose value it returns. False: no such fault. */
bool hardware_fault(int gpu, const char *prefix, const char *name, char code[HARDWARE_TEXT]);

/* ── Processes ── */

#define HARDWARE_UNKNOWN UINT64_MAX

struct hardware_process {
    char kind[16]; /* compute, graphics, mps */
    unsigned pid;
    uint64_t memory;      /* bytes, or HARDWARE_UNKNOWN */
    unsigned utilization; /* percent */
};

/* The processes of a GPU, *count of them, all of one moment; to be freed. */
struct hardware_process *hardware_processes(int gpu, unsigned *count);

/* ── MIG ── */

struct mig_placement {
    unsigned start;
    unsigned size;
};

/* One kind of GPU instance of a model. */
struct mig_profile {
    unsigned id;    /* the driver's number for it: 19 for 1g.10gb */
    unsigned index; /* NVML_GPU_INSTANCE_PROFILE_… */
    const char *name;
    unsigned slices;
    unsigned multiprocessors;
    unsigned copy_engines, decoders, encoders, jpegs, ofas;
    uint64_t memory_mib;
    unsigned instances; /* how many fit */
    unsigned placement_count;
    struct mig_placement placements[8];
};

/* The profiles of a GPU's model, *count of them. */
const struct mig_profile *hardware_mig_profiles(int gpu, unsigned *count);

#define MIG_MOST_INSTANCES 7
#define MIG_MOST_COMPUTE 7

struct mig_compute {
    unsigned id;
    unsigned slices;    /* 1c, 2c …: its profile */
    unsigned start;     /* in slices of the GPU instance */
};

struct mig_instance {
    unsigned id;
    const struct mig_profile *profile;
    struct mig_placement placement;
    unsigned compute_count;
    struct mig_compute compute[MIG_MOST_COMPUTE]; /* by id */
};

enum mig_result {
    MIG_DONE,
    MIG_DISABLED,       /* the GPU is not in MIG mode */
    MIG_UNKNOWN,        /* no such profile, placement or instance */
    MIG_FULL,           /* no room for it */
    MIG_BUSY,           /* something still lives in it */
    MIG_FAILED,         /* mig.state cannot be written */
};

/* The GPU instances there are, by id; none of a GPU that is not in MIG mode. */
unsigned hardware_mig_instances(int gpu, struct mig_instance instances[MIG_MOST_INSTANCES]);
/* MIG mode: the key mig.mode of hardware.conf, until it has been set here. */
bool hardware_mig_enabled(int gpu);
enum mig_result hardware_mig_set_mode(int gpu, bool enabled);
/* start -1: wherever it fits first. */
enum mig_result hardware_mig_create(int gpu, unsigned profile_id, int start, unsigned *gi);
enum mig_result hardware_mig_destroy(int gpu, unsigned gi);
enum mig_result hardware_mig_create_compute(int gpu, unsigned gi, unsigned slices, int start, unsigned *ci);
enum mig_result hardware_mig_destroy_compute(int gpu, unsigned gi, unsigned ci);
/* "MIG-…" of a compute instance. It is the same again when the same instances
 * of the same GPU are made again. */
bool hardware_mig_uuid(int gpu, unsigned gi, unsigned ci, char text[HARDWARE_TEXT]);

/* ── Xids ── */

struct hardware_xid {
    double at; /* Unix seconds */
    int gpu;
    int code;
    int gi, ci; /* -1 where it names no instance */
};

/* How many Xids have happened. */
size_t hardware_xid_count(void);
/* Copies the Xids from number `from` on, most of them at most, and returns
 * how many it copied. */
size_t hardware_xids(size_t from, struct hardware_xid *xids, size_t most);

/* ── The driver ── */

struct hardware_binding {
    double at; /* Unix seconds */
    int gpu;
    bool bound; /* to the driver; or else about to be unbound */
};

size_t hardware_binding_count(void);
bool hardware_binding(size_t number, struct hardware_binding *binding);

/* Holds dev/nvidia<minor> of a GPU open, or dev/nvidiactl (HARDWARE_NODE),
 * until hardware_detach closes all. A folder without the file, where it cannot
 * be made either, has nothing to hold. */
void hardware_attach(int gpu);
void hardware_detach(void);
/* Whether another process holds the GPU's file open. */
bool hardware_held_by_others(int gpu);

#pragma GCC visibility pop

#endif
