/* A text that grows. */
#ifndef RECORDING_TEXT_H
#define RECORDING_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
    char *bytes; /* ends with a zero; NULL: nothing was written yet */
    size_t length, capacity;
    bool failed; /* there was no memory: something is missing */
};

void text_free(struct text *text);
void text_add(struct text *text, const char *bytes, size_t length);
void text_format(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_hex(struct text *text, const void *bytes, size_t length);
/* The words " name", in quotes, so that it is one word of printable bytes. */
void text_quote(struct text *text, const char *string);

#endif
