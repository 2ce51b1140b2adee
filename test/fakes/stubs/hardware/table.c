#include "table.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    struct entry *next;
    int gpu;
    char *key;
    struct value value;
};

struct value value_parse(const char *text)
{
    struct value value = {0};
    snprintf(value.text, sizeof value.text, "%s", text);
    char *end;
    value.start = strtod(text, &end);
    if (end == text)
        return value;
    value.integer = strchr(text, '.') ? (int64_t)value.start : (int64_t)strtoull(text, NULL, 0);
    if (*end == '+') {
        char *rest;
        value.rate = strtod(end + 1, &rest);
        end = strcmp(rest, "/s") ? end : rest + 2;
    }
    value.numeric = *end == 0;
    return value;
}

bool value_none(const struct value *value)
{
    return !value || !strcmp(value->text, "none");
}

static unsigned bucket(int gpu, const char *key)
{
    uint32_t hash = 2166136261u ^ (uint32_t)gpu;
    for (; *key; key++)
        hash = (hash ^ (unsigned char)*key) * 16777619u;
    return hash % (sizeof(((struct table *)0)->buckets) / sizeof(struct entry *));
}

const struct value *table_find(const struct table *table, int gpu, const char *key)
{
    for (const struct entry *entry = table->buckets[bucket(gpu, key)]; entry; entry = entry->next)
        if (entry->gpu == gpu && !strcmp(entry->key, key))
            return &entry->value;
    return NULL;
}

static void put(struct table *table, int gpu, const char *key, struct value value)
{
    unsigned place = bucket(gpu, key);
    struct entry *entry = malloc(sizeof *entry);
    if (!entry || !(entry->key = strdup(key)))
        abort();
    entry->gpu = gpu;
    entry->value = value;
    entry->next = table->buckets[place]; /* what comes later goes before */
    table->buckets[place] = entry;
}

static void put_default(struct table *table, int gpu, const char *key, const char *text)
{
    if (!table_find(table, gpu, key))
        put(table, gpu, key, value_parse(text));
}

static void put_defaults(struct table *table, int gpu, const struct setting *settings)
{
    for (; settings->key; settings++)
        put_default(table, gpu, settings->key, settings->value);
}

static char *trim(char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    char *end = text + strlen(text);
    while (end > text && isspace((unsigned char)end[-1]))
        *--end = 0;
    return text;
}

/* Takes "node.<key>" or "gpu.<i>.<key>" apart. */
static bool subject(char *name, int *gpu, char **key)
{
    if (!strncmp(name, "node.", 5)) {
        *gpu = HARDWARE_NODE;
        *key = name + 5;
        return true;
    }
    if (strncmp(name, "gpu.", 4) || !isdigit((unsigned char)name[4]))
        return false;
    *gpu = (int)strtol(name + 4, key, 10);
    return *(*key)++ == '.';
}

static void read_line(struct table *table, char *line)
{
    char *value = strchr(line, '='), *key;
    int gpu;
    if (*trim(line) == '#' || !value)
        return;
    *value++ = 0;
    if (!subject(trim(line), &gpu, &key))
        return;
    struct value parsed = value_parse(trim(value));
    parsed.scripted = true;
    put(table, gpu, key, parsed);
    if (strstr(key, "return.") || strstr(key, "hang.") || strstr(key, "slow.") || strstr(key, "crash."))
        table->faults = true;
    if (!strncmp(key, "nvlink.", 7) && isdigit((unsigned char)key[7]))
        table->links = true;
}

/* 64 bits that look like chance and are the same for the same text. */
static uint64_t scatter(const char *text, uint64_t seed)
{
    uint64_t hash = 0xcbf29ce484222325u ^ seed;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    hash ^= hash >> 33;
    hash *= 0xff51afd7ed558ccdu;
    return hash ^ hash >> 33;
}

void table_uuid(const char *prefix, const char *name, char text[HARDWARE_TEXT])
{
    uint64_t high = scatter(name, 1), low = scatter(name, 2);
    snprintf(text, HARDWARE_TEXT, "%s%08x-%04x-%04x-%04x-%012llx", prefix, (unsigned)(high >> 32),
             (unsigned)(high >> 16 & 0xffff), (unsigned)(high & 0xffff), (unsigned)(low >> 48),
             (unsigned long long)(low & 0xffffffffffff));
}

/* Who the GPU is. GPUs of nodes with different node.seed are different. */
static void put_identity(struct table *table, int gpu)
{
    static const unsigned buses[] = {0x1b, 0x43, 0x52, 0x61, 0x9d, 0xc3, 0xd1, 0xdf};
    const struct value *seed = table_find(table, HARDWARE_NODE, "seed");
    char name[HARDWARE_TEXT + 16], text[HARDWARE_TEXT];
    snprintf(name, sizeof name, "%s/%d", seed ? seed->text : "", gpu);

    table_uuid("GPU-", name, text);
    put_default(table, gpu, "uuid", text);
    snprintf(text, sizeof text, "16529%08u", (unsigned)(scatter(name, 3) % 100000000));
    put_default(table, gpu, "serial", text);
    snprintf(text, sizeof text, "%d", gpu);
    put_default(table, gpu, "minor", text);
    snprintf(text, sizeof text, "%d", gpu % 8 + 1);
    put_default(table, gpu, "module_id", text);
    snprintf(text, sizeof text, "%08X:%02X:00.0", (unsigned)gpu / 8, buses[gpu % 8]);
    put_default(table, gpu, "pci.bus_id", text);
}

const struct model *table_model(const struct table *table, int gpu)
{
    const struct value *model = table_find(table, gpu, "model");
    if (!model)
        model = table_find(table, HARDWARE_NODE, "model");
    return model_named(model ? model->text : NULL);
}

struct table *table_make(char *text)
{
    struct table *table = calloc(1, sizeof *table);
    if (!table)
        abort();
    for (char *line; (line = strsep(&text, "\n"));)
        read_line(table, line);

    put_defaults(table, HARDWARE_NODE, model_node);
    const struct value *gpus = table_find(table, HARDWARE_NODE, "gpus");
    table->gpus = gpus && gpus->numeric && gpus->integer >= 0 ? (int)gpus->integer : 8;
    if (table->gpus > HARDWARE_MOST_GPUS)
        table->gpus = HARDWARE_MOST_GPUS;
    for (int gpu = 0; gpu < table->gpus; gpu++) {
        put_defaults(table, gpu, table_model(table, gpu)->settings);
        put_defaults(table, gpu, model_common);
        put_identity(table, gpu);
    }
    const struct value *epoch = table_find(table, HARDWARE_NODE, "epoch");
    table->epoch = epoch && epoch->numeric ? epoch->start : 0;
    return table;
}

void table_free(struct table *table)
{
    for (unsigned i = 0; table && i < sizeof table->buckets / sizeof *table->buckets; i++)
        while (table->buckets[i]) {
            struct entry *entry = table->buckets[i];
            table->buckets[i] = entry->next;
            free(entry->key);
            free(entry);
        }
    free(table);
}
