/* How a field becomes a value: shared by what is read (reading.c) and what is
 * made of several things (composed.c). */
#ifndef STUB_DCGM_READING_H
#define STUB_DCGM_READING_H

#include "internal.h"

/* The kinds of blank values: how far they are from the first. */
#define UNKNOWN 0
#define NOT_SUPPORTED 2

enum reading blank_reading(const struct field *field, int kind, struct value *value);
/* Sets number and rounded integer: the field's type says which of them counts. */
enum reading number_reading(double number, struct value *value);

/* A field of the source FROM_ENGINE. */
enum reading composed_reading(struct engine *engine, const struct field *field, struct entity entity,
                              struct place place, struct value *value);

#endif
