/* hardware.conf with the models' defaults, as a table of values. A table does
 * not change once it is made. */
#ifndef STUB_HARDWARE_TABLE_H
#define STUB_HARDWARE_TABLE_H

#include "hardware.h"
#include "model.h"

struct value {
    char text[HARDWARE_TEXT];
    bool scripted; /* there is a line for it */
    bool numeric;
    int64_t integer; /* where it begins, without fraction */
    double start;
    double rate; /* per second */
};

struct table {
    struct entry *buckets[1024];
    int gpus;
    double epoch; /* Unix seconds; 0 where none is scripted */
    bool faults;  /* whether any line says that something fails or hangs */
    bool links;   /* whether any line is about a single NVLink */
};

/* Reads the text of a hardware.conf. Lines that are none are ignored. */
struct table *table_make(char *text);
void table_free(struct table *table);
/* The value of a line or of a model's default; NULL: neither. */
const struct value *table_find(const struct table *table, int gpu, const char *key);

struct value value_parse(const char *text);
bool value_none(const struct value *value);
/* A UUID that is always the same for the same name. */
void table_uuid(const char *prefix, const char *name, char text[HARDWARE_TEXT]);
const struct model *table_model(const struct table *table, int gpu);

#endif
