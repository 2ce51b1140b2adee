#include "handles.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More handles than that have no name. */
#define MOST 4096

struct handle {
    struct handle *next;
    enum handle_kind kind;
    void *pointer;
    char name[HANDLE_NAME], content[HANDLE_NAME];
};

static struct {
    pthread_mutex_t lock;
    struct handle *first;
    unsigned count;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The functions below are called with the lock. */

/* Where a handle hangs in the list, at its end if there is none. */
static struct handle **place_of(enum handle_kind kind, const void *pointer)
{
    struct handle **at = &table.first;
    while (*at && ((*at)->kind != kind || (*at)->pointer != pointer))
        at = &(*at)->next;
    return at;
}

static struct handle *named(enum handle_kind kind, const char *name)
{
    struct handle *handle = table.first;
    while (handle && (handle->kind != kind || strcmp(handle->name, name)))
        handle = handle->next;
    return handle;
}

/* Makes a name that no other handle has: the wish, or with a number after it. */
static void choose_name(enum handle_kind kind, const char *wish, char name[HANDLE_NAME])
{
    static const char letters[] = {[HANDLE_DEVICE] = 'd', [HANDLE_INSTANCE] = 'g', [HANDLE_EVENTS] = 'e', [HANDLE_SAMPLE] = 's'};
    if (wish)
        snprintf(name, HANDLE_NAME, "%s", wish);
    for (unsigned number = 0; number == 0 || named(kind, name); number++)
        if (!wish)
            snprintf(name, HANDLE_NAME, "%c%u", letters[kind], number);
        else if (number > 0)
            snprintf(name, HANDLE_NAME, "%.40s+%u", wish, number);
}

/* NULL as a pointer is the address of the entry. */
static struct handle *add(enum handle_kind kind, void *pointer, const char *wish)
{
    struct handle *handle = table.count < MOST ? calloc(1, sizeof *handle) : NULL;
    if (!handle)
        return NULL;
    handle->kind = kind;
    handle->pointer = pointer ? pointer : handle;
    choose_name(kind, wish, handle->name);
    strcpy(handle->content, "empty");
    handle->next = table.first;
    table.first = handle;
    table.count++;
    return handle;
}

/* Copies a text of a handle, or the word for one that has none. */
static void copy(const struct handle *handle, const void *pointer, const char *text, char to[HANDLE_NAME])
{
    snprintf(to, HANDLE_NAME, "%s", handle ? text : pointer ? "unknown" : "null");
}

void handle_name(enum handle_kind kind, const void *pointer, char name[HANDLE_NAME])
{
    pthread_mutex_lock(&table.lock);
    const struct handle *handle = *place_of(kind, pointer);
    copy(handle, pointer, handle ? handle->name : NULL, name);
    pthread_mutex_unlock(&table.lock);
}

void handle_content(enum handle_kind kind, const void *pointer, char content[HANDLE_NAME])
{
    pthread_mutex_lock(&table.lock);
    const struct handle *handle = *place_of(kind, pointer);
    copy(handle, pointer, handle ? handle->content : NULL, content);
    pthread_mutex_unlock(&table.lock);
}

void handle_fill(enum handle_kind kind, const void *pointer, const char *content)
{
    pthread_mutex_lock(&table.lock);
    struct handle *handle = *place_of(kind, pointer);
    if (handle)
        snprintf(handle->content, sizeof handle->content, "%s", content);
    pthread_mutex_unlock(&table.lock);
}

void handle_add(enum handle_kind kind, void *pointer, const char *wish, char name[HANDLE_NAME])
{
    pthread_mutex_lock(&table.lock);
    const struct handle *handle = *place_of(kind, pointer);
    if (!handle && pointer)
        handle = add(kind, pointer, wish);
    copy(handle, pointer, handle ? handle->name : NULL, name);
    pthread_mutex_unlock(&table.lock);
}

void *handle_make(enum handle_kind kind, const char *name)
{
    pthread_mutex_lock(&table.lock);
    struct handle *handle = name ? named(kind, name) : NULL;
    if (!handle)
        handle = add(kind, NULL, name);
    pthread_mutex_unlock(&table.lock);
    return handle;
}

void handle_remove(enum handle_kind kind, const void *pointer)
{
    pthread_mutex_lock(&table.lock);
    struct handle **at = place_of(kind, pointer), *gone = *at;
    if (gone) {
        *at = gone->next;
        table.count--;
        free(gone);
    }
    pthread_mutex_unlock(&table.lock);
}
