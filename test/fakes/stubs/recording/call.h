/* What the recorder and the player share: the functions of libnvidia-ml, what
 * their arguments are, and the words that stand for them in a recording.
 * README.md describes the format. */
#ifndef RECORDING_CALL_H
#define RECORDING_CALL_H

/* The functions of nvml.h are all that a library shows. */
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#pragma GCC visibility push(default)
#include <nvml.h>
#pragma GCC visibility pop

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "handles.h"
#include "text.h"

/* Before the number of the version in the first line of a recording. */
#define RECORDING_MAGIC "dra-recording "
#define RECORDING_VERSION 1

/* A structure of which single parts are not plain bytes. */
struct layout {
    size_t key;    /* so many bytes at the beginning are set by the caller, and say what is wanted */
    size_t status; /* of an element: where its return code is */
    enum special { PLAIN, DEVICE_HANDLE, WALL_TIME, POINTERS } special;
    size_t offset, size; /* of the special part */
};

extern const struct layout event_data, gpu_instance_info, process_sample, field_value, gpm_metric, versioned;

enum argument_kind {
    ARGUMENT_END,
    ARGUMENT_NUMBER,   /* a number that says what is wanted */
    ARGUMENT_CONTEXT,  /* a number on which the answer of a recording does not depend */
    ARGUMENT_STRING,   /* a text that says what is wanted */
    ARGUMENT_HANDLE,   /* of what exists by itself */
    ARGUMENT_OBJECT,   /* the handle of what the caller has allocated */
    ARGUMENT_FILLED,   /* likewise, and the call fills it */
    ARGUMENT_FREED,    /* likewise, and the call frees it */
    ARGUMENT_CONTENT,  /* likewise: what has filled it says what is wanted */
    ARGUMENT_OUT,      /* a number or a structure */
    ARGUMENT_TEXT,     /* a text, for which there is a buffer of a length */
    ARGUMENT_LIST,     /* a list, with its capacity before and its length after the call */
    ARGUMENT_ELEMENTS, /* a list in which the caller says what is wanted */
    ARGUMENT_FOUND,    /* the handle of what exists by itself */
    ARGUMENT_CREATED,  /* the handle of what the call allocates */
};

/* One argument of one call. */
struct argument {
    enum argument_kind kind;
    enum handle_kind handle;
    uint64_t number; /* of a text its buffer's length, of a list its capacity, of elements their count */
    void *pointer;   /* what the argument points to, or a handle */
    size_t size;     /* of what the argument points to, or of an element of it */
    unsigned *count; /* of a list */
    const struct layout *layout; /* NULL: it is a number */
    bool part; /* of a handle that is found: it is named after the first two arguments */
};

extern const struct layout plain;

/* The arguments as functions.def declares them. */
#define NONE {.kind = ARGUMENT_END}
#define NUMBER(value) {.kind = ARGUMENT_NUMBER, .number = (uint64_t)(value)}
#define CONTEXT(value) {.kind = ARGUMENT_CONTEXT, .number = (uint64_t)(value)}
#define STRING(text) {.kind = ARGUMENT_STRING, .pointer = (void *)(uintptr_t)(text)}
#define HANDLE_ARGUMENT(what, which, value) {.kind = what, .handle = which, .pointer = (void *)(value).handle}
#define DEVICE(value) HANDLE_ARGUMENT(ARGUMENT_HANDLE, HANDLE_DEVICE, value)
#define INSTANCE(value) HANDLE_ARGUMENT(ARGUMENT_HANDLE, HANDLE_INSTANCE, value)
#define EVENTS(value) HANDLE_ARGUMENT(ARGUMENT_OBJECT, HANDLE_EVENTS, value)
#define FREED_EVENTS(value) HANDLE_ARGUMENT(ARGUMENT_FREED, HANDLE_EVENTS, value)
#define FILLED_SAMPLE(value) HANDLE_ARGUMENT(ARGUMENT_FILLED, HANDLE_SAMPLE, value)
#define FREED_SAMPLE(value) HANDLE_ARGUMENT(ARGUMENT_FREED, HANDLE_SAMPLE, value)
#define SAMPLE_CONTENT(value) HANDLE_ARGUMENT(ARGUMENT_CONTENT, HANDLE_SAMPLE, value)
#define OUT(to) {.kind = ARGUMENT_OUT, .pointer = (to), .size = sizeof *(to), .layout = LAYOUT_OF(*(to))}
#define LAYOUT_OF(value) _Generic((value), unsigned int: NULL, unsigned long long: NULL, default: &plain)
#define OUT_OF(to, of) {.kind = ARGUMENT_OUT, .pointer = (to), .size = sizeof *(to), .layout = &(of)}
#define TEXT(to, length) {.kind = ARGUMENT_TEXT, .pointer = (to), .number = (length)}
#define LIST(to, length) LIST_OF(to, length, plain)
#define LIST_OF(to, length, of) \
    {.kind = ARGUMENT_LIST, .pointer = (to), .size = sizeof *(to), .count = (length), .number = (length) ? *(length) : 0, .layout = &(of)}
#define ELEMENTS(to, length, of) \
    {.kind = ARGUMENT_ELEMENTS, .pointer = (to), .size = sizeof *(to), .number = (to) ? (uint64_t)(length) : 0, .layout = &(of)}
#define FOUND_ARGUMENT(which, to) {.kind = ARGUMENT_FOUND, .handle = which, .pointer = (to)}
#define FOUND_DEVICE(to) FOUND_ARGUMENT(HANDLE_DEVICE, to)
#define FOUND_INSTANCE(to) FOUND_ARGUMENT(HANDLE_INSTANCE, to)
#define FOUND_PART(to) {.kind = ARGUMENT_FOUND, .handle = HANDLE_DEVICE, .pointer = (to), .part = true}
#define CREATED(which, to) {.kind = ARGUMENT_CREATED, .handle = which, .pointer = (to)}
#define CREATED_EVENTS(to) CREATED(HANDLE_EVENTS, to)
#define CREATED_SAMPLE(to) CREATED(HANDLE_SAMPLE, to)

/* The functions, numbered as in functions.def. */
enum function {
#define FUNCTION(name, parameters, passed, ...) FUNCTION_##name,
#define WAIT(name, parameters, passed, ...) FUNCTION_##name,
#define TEXT_FUNCTION(name, parameters, passed, ...) FUNCTION_##name,
#include "functions.def"
    FUNCTIONS
};

/* The name in C. */
extern const char *const function_names[FUNCTIONS];

/* A call before it is made: the arguments end with ARGUMENT_END. */
struct call {
    enum function function;
    struct argument *arguments;
};

/* Writes function and arguments. For a key, the words on which the answer of a
 * recording does not depend are left out. */
void write_call(struct text *text, const struct call *call, bool key);
/* A word of a call that is not part of its key. */
bool outside_key(const char *word);
/* The bytes by which the caller says what element i is to be. */
void write_element_key(struct text *text, const struct argument *elements, uint64_t i);

/* Writes what a call has answered, and names new handles. */
void write_answer(struct text *text, const struct call *call, nvmlReturn_t status);

/* Reads the words of an answer into the arguments. */
struct reading {
    const char *words;
    int64_t later; /* microseconds from the recording to now */
};
bool read_bytes(struct reading *reading, void *to, size_t size, const struct layout *layout);
bool read_number(struct reading *reading, uint64_t *number);
bool read_string(struct reading *reading, struct text *text);
bool read_name(struct reading *reading, char name[HANDLE_NAME]);
void skip_word(struct reading *reading);
/* Whether words could be an answer, whatever the function. */
bool words_valid(const char *words, size_t length);

/* Marks the objects that a successful call has filled. */
void fill_objects(const struct call *call);

#endif
