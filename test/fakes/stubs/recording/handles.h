/* The handles that a program has, by kind and name. The recorder names the
 * handles of the real library; the handles of the player are addresses of
 * entries of this table. All functions are safe for concurrent use. */
#ifndef RECORDING_HANDLES_H
#define RECORDING_HANDLES_H

#include <stdbool.h>

enum handle_kind {
    HANDLE_DEVICE,   /* d0; d0m1 is the MIG device with index 1 */
    HANDLE_INSTANCE, /* g0: a GPU instance */
    HANDLE_EVENTS,   /* e0: an event set */
    HANDLE_SAMPLE,   /* s0: a GPM sample */
};

#define HANDLE_NAME 64

/* The name of a handle: "null" for NULL, "unknown" for one that is not in the
 * table. */
void handle_name(enum handle_kind kind, const void *pointer, char name[HANDLE_NAME]);

/* Names a handle. One that has a name keeps it. NULL as a wish is the first
 * free number. Where the table is full, the name is "unknown". */
void handle_add(enum handle_kind kind, void *pointer, const char *wish, char name[HANDLE_NAME]);

/* The handle of a name, which is made where there is none; NULL: the table is
 * full. NULL as a name is a new handle with the first free number. */
void *handle_make(enum handle_kind kind, const char *name);

/* Takes a handle out of the table, with its name and content. */
void handle_remove(enum handle_kind kind, const void *pointer);

/* What an object was filled with: "null" and "unknown" as above, "empty"
 * before it is set. */
void handle_content(enum handle_kind kind, const void *pointer, char content[HANDLE_NAME]);
void handle_fill(enum handle_kind kind, const void *pointer, const char *content);

#endif
