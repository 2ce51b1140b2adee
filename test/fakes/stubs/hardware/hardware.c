#include "hardware.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "store.h"

#define LOOK_EVERY 5000000 /* nanoseconds */

struct store store = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct file conf = {.name = "hardware.conf"};
static struct file state = {.name = "mig.state"};
static struct file xids = {.name = "xids"};
static struct file bindings = {.name = "bindings"};
static struct file settings = {.name = "settings"};

static double unix_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int64_t monotonic_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static bool is_folder(const char *path)
{
    struct stat status;
    return !stat(path, &status) && S_ISDIR(status.st_mode);
}

/* The folder that is scripted, empty where there is none. */
static void find_folder(char folder[static sizeof store.folder])
{
    Dl_info own;
    const char *named = getenv("DRA_STUB_HARDWARE");
    folder[0] = 0;
    if (named && *named) {
        snprintf(folder, sizeof store.folder, "%s", named);
    } else if (dladdr(&conf, &own) && own.dli_fname) {
        const char *slash = strrchr(own.dli_fname, '/');
        snprintf(folder, sizeof store.folder, "%.*shardware", slash ? (int)(slash + 1 - own.dli_fname) : 0, own.dli_fname);
    }
    if (!is_folder(folder))
        folder[0] = 0;
}

/* Whether a file is another one than when this was asked last. */
static bool changed(struct file *file)
{
    char path[sizeof store.folder + 32];
    struct stat now;
    snprintf(path, sizeof path, "%s/%s", store.folder, file->name);
    if (!store.folder[0] || stat(path, &now))
        memset(&now, 0, sizeof now);
    bool same = now.st_ino == file->seen.st_ino && now.st_size == file->seen.st_size &&
                now.st_mtim.tv_sec == file->seen.st_mtim.tv_sec && now.st_mtim.tv_nsec == file->seen.st_mtim.tv_nsec;
    file->seen = now;
    return !same;
}

char *store_read(const char *name)
{
    char path[sizeof store.folder + 32];
    snprintf(path, sizeof path, "%s/%s", store.folder, name);
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t size = 0;
    if (!file)
        return NULL;
    if (getdelim(&text, &size, 0, file) < 0) {
        free(text);
        text = strdup("");
    }
    fclose(file);
    return text;
}

/* What programs have set goes before the script. */
static void take_conf(void)
{
    char *text = store_read(conf.name), *set = store_read(settings.name), *all = NULL;
    if (asprintf(&all, "%s\n%s", text ? text : "", set ? set : "") < 0)
        abort();
    table_free(store.table);
    store.table = table_make(all);
    free(text);
    free(set);
    free(all);
    store.generation++;
}

void store_look(void)
{
    store.looked = monotonic_now();
    if (store.first == 0)
        store.first = unix_now();
    bool renewed = changed(&conf) | changed(&settings) | !store.table;
    if (renewed)
        take_conf();
    if (changed(&state) || renewed) {
        char *text = store_read(state.name);
        mig_take(text);
        free(text);
        store.generation++;
    }
    if (changed(&xids)) {
        char *text = store_read(xids.name);
        xids_take(text);
        free(text);
    }
    if (changed(&bindings)) {
        char *text = store_read(bindings.name);
        bindings_take(text);
        free(text);
    }
}

void store_enter(void)
{
    pthread_mutex_lock(&store.lock);
    if (!store.table || monotonic_now() - store.looked >= LOOK_EVERY)
        store_look();
}

void store_leave(void) { pthread_mutex_unlock(&store.lock); }

bool hardware_present(void)
{
    char folder[sizeof store.folder];
    find_folder(folder);
    pthread_mutex_lock(&store.lock);
    if (strcmp(folder, store.folder)) {
        memcpy(store.folder, folder, sizeof folder);
        table_free(store.table);
        store.table = NULL;
    }
    store_look();
    pthread_mutex_unlock(&store.lock);
    return folder[0];
}

uint64_t hardware_generation(void)
{
    store_enter();
    uint64_t generation = store.generation;
    store_leave();
    return generation;
}

int hardware_gpus(void)
{
    store_enter();
    int gpus = store.folder[0] ? store.table->gpus : 0;
    store_leave();
    return gpus;
}

/* Whether the driver's link to a GPU is there, if the script names one. */
static bool bound(int gpu)
{
    char link[HARDWARE_TEXT];
    struct stat status;
    return !hardware_text(gpu, "driver_link", link) || !lstat(link, &status);
}

bool hardware_there(int gpu)
{
    return gpu >= 0 && gpu < hardware_gpus() && !hardware_flag(gpu, "absent") && bound(gpu);
}

bool hardware_lost(int gpu) { return hardware_flag(gpu, "lost"); }

bool store_value(int gpu, const char *key, struct value *value)
{
    bool found;
    if (gpu >= store.table->gpus)
        return false;
    if (!link_value(gpu, key, value, &found) && !partition_value(gpu, key, value, &found)) {
        const struct value *known = table_find(store.table, gpu, key);
        found = known != NULL;
        if (known)
            *value = *known;
    }
    return found && !value_none(value);
}

static bool look_up(int gpu, const char *key, struct value *value, double *elapsed)
{
    store_enter();
    bool found = store_value(gpu, key, value);
    if (elapsed)
        *elapsed = 0;
    if (found && elapsed && value->rate != 0)
        *elapsed = unix_now() - (store.table->epoch > 0 ? store.table->epoch : store.first);
    store_leave();
    return found;
}

bool hardware_text(int gpu, const char *key, char text[HARDWARE_TEXT])
{
    struct value value;
    if (!look_up(gpu, key, &value, NULL))
        return false;
    memcpy(text, value.text, HARDWARE_TEXT);
    return true;
}

bool hardware_number(int gpu, const char *key, double *number)
{
    struct value value;
    double elapsed;
    if (!look_up(gpu, key, &value, &elapsed) || !value.numeric)
        return false;
    *number = value.start + value.rate * elapsed;
    return true;
}

bool hardware_integer(int gpu, const char *key, int64_t *integer)
{
    struct value value;
    double elapsed;
    if (!look_up(gpu, key, &value, &elapsed) || !value.numeric)
        return false;
    *integer = value.integer + (int64_t)floor(value.rate * elapsed);
    return true;
}

bool hardware_flag(int gpu, const char *key)
{
    struct value value;
    return look_up(gpu, key, &value, NULL) && !(value.numeric && value.start == 0);
}

bool hardware_rate(int gpu, const char *key, double *per_second)
{
    struct value value;
    if (!look_up(gpu, key, &value, NULL) || !value.numeric)
        return false;
    *per_second = value.rate;
    return true;
}

bool hardware_set(int gpu, const char *key, const char *text)
{
    char path[sizeof store.folder + 32], line[3 * HARDWARE_TEXT];
    if (gpu == HARDWARE_NODE)
        snprintf(line, sizeof line, "node.%s = %s\n", key, text);
    else
        snprintf(line, sizeof line, "gpu.%d.%s = %s\n", gpu, key, text);
    pthread_mutex_lock(&store.lock);
    snprintf(path, sizeof path, "%s/%s", store.folder, settings.name);
    int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    bool kept = file >= 0 && write(file, line, strlen(line)) == (ssize_t)strlen(line);
    if (file >= 0)
        close(file);
    store_look();
    pthread_mutex_unlock(&store.lock);
    return kept;
}

/* Texts are padded, so that no reader ever sees half of one. */
void hardware_report(const char *name, const char *text)
{
    char path[sizeof store.folder + 64], padded[64];
    pthread_mutex_lock(&store.lock);
    snprintf(path, sizeof path, "%s/%s.%d", store.folder, name, (int)getpid());
    snprintf(padded, sizeof padded, "%-62s\n", text);
    int file = store.folder[0] ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666) : -1;
    if (file >= 0) {
        ssize_t written = write(file, padded, sizeof padded);
        (void)written; /* a folder that cannot be written is nothing to those who use the hardware */
        close(file);
    }
    pthread_mutex_unlock(&store.lock);
}

bool hardware_fault(int gpu, const char *prefix, const char *name, char code[HARDWARE_TEXT])
{
    char key[HARDWARE_TEXT];
    store_enter();
    bool possible = store.table->faults;
    store_leave();
    if (!possible)
        return false;
    snprintf(key, sizeof key, "%scrash.%s", prefix, name);
    volatile int *volatile nowhere = NULL;
    if (hardware_flag(gpu, key))
        *nowhere = 0;
    snprintf(key, sizeof key, "%sslow.%s", prefix, name);
    int64_t milliseconds;
    if (hardware_integer(gpu, key, &milliseconds))
        nanosleep(&(struct timespec){.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000}, NULL);
    snprintf(key, sizeof key, "%shang.%s", prefix, name);
    while (hardware_flag(gpu, key))
        nanosleep(&(struct timespec){.tv_nsec = LOOK_EVERY}, NULL);
    snprintf(key, sizeof key, "%sreturn.%s", prefix, name);
    return hardware_text(gpu, key, code);
}
