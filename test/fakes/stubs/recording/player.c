/* libnvidia-ml-player.so: answers as a recording says. Time passes as it did
 * when the recording was made, from the first initialization on. */
#include "call.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "recording.h"

/* Return codes below this have texts. */
#define MOST_CODES 1024

static struct {
    atomic_int sessions;        /* initializations without their shutdown */
    struct recording recording; /* is not changed once there has been a session */
    int64_t start;              /* by the monotonic clock, in ns */
    int64_t later;              /* microseconds from the recording's start to this one */
    atomic_bool complained;     /* of an answer that does not fit its function */

    pthread_mutex_t lock; /* of what follows */
    bool loaded;
    struct text failure; /* why nothing is loaded */
    size_t delivered;    /* events */
    char *strings[MOST_CODES]; /* of return codes; callers keep pointers to them */
} player = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The time of the recording. */
static int64_t recorded_now(void)
{
    return clock_ns(CLOCK_MONOTONIC) - player.start;
}

static void sleep_until(int64_t time)
{
    time += player.start;
    struct timespec at = {.tv_sec = time / 1000000000, .tv_nsec = time % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
        ;
}

/* How long ago playing has begun, so that several processes play the same
 * moment: since $DRA_PLAYER_START (Unix microseconds), or else since now. */
static int64_t since_start(void)
{
    const char *start = getenv("DRA_PLAYER_START");
    long long microseconds = start ? strtoll(start, NULL, 10) : 0;
    return microseconds > 0 ? clock_ns(CLOCK_REALTIME) - microseconds * 1000 : 0;
}

/* Loads the recording, or says once why it cannot be. The lock is held. */
static bool load(void)
{
    struct text why = {0}, failure = {0};
    const char *path = getenv("DRA_PLAYER_RECORDING");
    if (!path || !*path)
        path = getenv("DRA_RECORDING");
    if (!path || !*path)
        text_format(&failure, "DRA_RECORDING names no recording");
    else if (recording_load(&player.recording, path, &why)) {
        text_free(&player.failure);
        return true;
    } else {
        text_format(&failure, "recording %s: %s", path, why.bytes ? why.bytes : "there is no memory");
    }
    text_free(&why);
    if (failure.bytes && (!player.failure.bytes || strcmp(failure.bytes, player.failure.bytes)))
        fprintf(stderr, "libnvidia-ml-player: %s\n", failure.bytes);
    text_free(&player.failure);
    player.failure = failure;
    return false;
}

/* Complains of an answer that a call cannot have: the file is not what it
 * seems to be, or was made with another nvml.h. */
static nvmlReturn_t misfit(const struct call *call, const struct answer *answer)
{
    if (!atomic_exchange(&player.complained, true))
        fprintf(stderr, "libnvidia-ml-player: recording line %lu: the answer does not fit %s\n", answer->line, function_names[call->function]);
    return NVML_ERROR_UNKNOWN;
}

/* What a call returns that was never recorded. */
static nvmlReturn_t never_recorded(const struct call *call)
{
    struct text key = {0};
    text_format(&key, "lacks %s", function_names[call->function]);
    bool lacks = key.bytes && recording_find(&player.recording, key.bytes).count;
    text_free(&key);
    return lacks ? NVML_ERROR_FUNCTION_NOT_FOUND : NVML_ERROR_NOT_SUPPORTED;
}

/* Whether the caller has a buffer, the size of which decides whether an answer
 * fits. */
static bool has_buffer(const struct call *call)
{
    for (const struct argument *a = call->arguments; a->kind != ARGUMENT_END; a++)
        if ((a->kind == ARGUMENT_LIST || a->kind == ARGUMENT_TEXT) && a->pointer)
            return true;
    return false;
}

/* The answer to a call now. That a buffer was too small then says nothing
 * about the one that the caller has now. */
static const struct answer *choose(const struct call *call, struct answers answers)
{
    const struct answer *now = answer_at(answers, recorded_now()), *end = answers.first + answers.count;
    if (!now || now->status != NVML_ERROR_INSUFFICIENT_SIZE || !has_buffer(call))
        return now;
    for (const struct answer *earlier = now; earlier > answers.first;)
        if ((--earlier)->status != NVML_ERROR_INSUFFICIENT_SIZE)
            return earlier;
    for (const struct answer *later = now; ++later < end;)
        if (later->status != NVML_ERROR_INSUFFICIENT_SIZE)
            return later;
    return now;
}

/* The functions below write one argument. They return NVML_ERROR_UNKNOWN where
 * the answer does not fit. */

static nvmlReturn_t play_text(struct reading *reading, const struct argument *a)
{
    struct text text = {0};
    nvmlReturn_t status = NVML_ERROR_UNKNOWN;
    if (read_string(reading, &text)) {
        status = text.length < a->number ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
        if (status == NVML_SUCCESS)
            memcpy(a->pointer, text.bytes, text.length + 1);
    }
    text_free(&text);
    return status;
}

static nvmlReturn_t play_list(struct reading *reading, const struct argument *a, bool succeeded)
{
    uint64_t length;
    if (!a->count) {
        skip_word(reading);
        return NVML_SUCCESS;
    }
    if (!read_number(reading, &length) || length > UINT32_MAX)
        return NVML_ERROR_UNKNOWN;
    *a->count = (unsigned)length;
    if (!succeeded || !a->pointer)
        return NVML_SUCCESS;
    if (length > a->number)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    for (uint64_t i = 0; i < length; i++)
        if (!read_bytes(reading, (char *)a->pointer + i * a->size, a->size, a->layout))
            return NVML_ERROR_UNKNOWN;
    return NVML_SUCCESS;
}

/* Each element has answers of its own: a list may have been put together in
 * another way when the recording was made. */
static nvmlReturn_t play_elements(const char *key, const struct argument *a)
{
    for (uint64_t i = 0; i < a->number; i++) {
        char *element = (char *)a->pointer + i * a->size;
        struct text text = {0};
        text_format(&text, "%s #", key);
        write_element_key(&text, a, i);
        const struct answer *answer = text.bytes ? answer_at(recording_find(&player.recording, text.bytes), recorded_now()) : NULL;
        text_free(&text);
        nvmlReturn_t status = NVML_ERROR_NOT_SUPPORTED;
        if (!answer)
            memcpy(element + a->layout->status, &status, sizeof status);
        else if (!read_bytes(&(struct reading){answer->words, player.later}, element, a->size, a->layout))
            return NVML_ERROR_UNKNOWN;
    }
    return NVML_SUCCESS;
}

/* A handle that was found has the name that it had; one that is created is
 * another in each process. */
static nvmlReturn_t play_handle(struct reading *reading, const struct argument *a)
{
    char name[HANDLE_NAME];
    if (!read_name(reading, name))
        return NVML_ERROR_UNKNOWN;
    void *handle = handle_make(a->handle, a->kind == ARGUMENT_FOUND ? name : NULL);
    memcpy(a->pointer, &handle, sizeof handle);
    return handle ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

static nvmlReturn_t play_argument(struct reading *reading, const struct argument *a, const char *key, bool succeeded)
{
    switch (a->kind) {
    case ARGUMENT_LIST:
        return play_list(reading, a, succeeded);
    case ARGUMENT_ELEMENTS:
        return succeeded && a->pointer ? play_elements(key, a) : NVML_SUCCESS;
    case ARGUMENT_OUT:
    case ARGUMENT_TEXT:
    case ARGUMENT_FOUND:
    case ARGUMENT_CREATED:
        break;
    default:
        return NVML_SUCCESS;
    }
    if (!succeeded || !a->pointer) {
        skip_word(reading);
        return NVML_SUCCESS;
    }
    if (a->kind == ARGUMENT_OUT)
        return read_bytes(reading, a->pointer, a->size, a->layout) ? NVML_SUCCESS : NVML_ERROR_UNKNOWN;
    return a->kind == ARGUMENT_TEXT ? play_text(reading, a) : play_handle(reading, a);
}

/* Writes an answer where the caller wants it. */
static nvmlReturn_t play_answer(const struct call *call, const char *key, const struct answer *answer)
{
    struct reading reading = {.words = answer->words, .later = player.later};
    bool succeeded = answer->status == NVML_SUCCESS;
    for (const struct argument *a = call->arguments; a->kind != ARGUMENT_END; a++) {
        nvmlReturn_t status = play_argument(&reading, a, key, succeeded);
        if (status == NVML_ERROR_UNKNOWN)
            return misfit(call, answer);
        if (status != NVML_SUCCESS)
            return status;
    }
    if (succeeded)
        fill_objects(call);
    for (const struct argument *a = call->arguments; succeeded && a->kind != ARGUMENT_END; a++)
        if (a->kind == ARGUMENT_FREED)
            handle_remove(a->handle, a->pointer);
    return (nvmlReturn_t)answer->status;
}

static nvmlReturn_t play_recorded(const struct call *call)
{
    struct text key = {0};
    write_call(&key, call, true);
    nvmlReturn_t status = NVML_ERROR_MEMORY;
    if (!key.failed) {
        const struct answer *answer = choose(call, recording_find(&player.recording, key.bytes));
        status = answer ? play_answer(call, key.bytes, answer) : never_recorded(call);
    }
    text_free(&key);
    return status;
}

static nvmlReturn_t play_init(const struct call *call)
{
    pthread_mutex_lock(&player.lock);
    bool loaded = player.loaded = player.loaded || load();
    if (loaded && !player.start) {
        player.start = clock_ns(CLOCK_MONOTONIC) - since_start();
        player.later = (clock_ns(CLOCK_REALTIME) - recorded_now()) / 1000 - player.recording.wall;
    }
    pthread_mutex_unlock(&player.lock);
    if (!loaded)
        return NVML_ERROR_DRIVER_NOT_LOADED;
    nvmlReturn_t status = play_recorded(call);
    if (status == NVML_SUCCESS)
        atomic_fetch_add(&player.sessions, 1);
    return status;
}

static nvmlReturn_t play_shutdown(void)
{
    int sessions = atomic_load(&player.sessions);
    while (sessions > 0)
        if (atomic_compare_exchange_weak(&player.sessions, &sessions, sessions - 1))
            return NVML_SUCCESS;
    return NVML_ERROR_UNINITIALIZED;
}

static nvmlReturn_t play(const struct call *call)
{
    switch (call->function) {
    case FUNCTION_nvmlInit:
    case FUNCTION_nvmlInit_v2:
    case FUNCTION_nvmlInitWithFlags:
        return play_init(call);
    case FUNCTION_nvmlShutdown:
        return play_shutdown();
    default:
        return atomic_load(&player.sessions) > 0 ? play_recorded(call) : NVML_ERROR_UNINITIALIZED;
    }
}

/* The next event, if it comes in time. It is not delivered again. */
static const struct answer *take_event(int64_t deadline)
{
    struct answers events = recording_find(&player.recording, "event");
    const struct answer *event = NULL;
    pthread_mutex_lock(&player.lock);
    if (player.delivered < events.count && events.first[player.delivered].time <= deadline)
        event = &events.first[player.delivered++];
    pthread_mutex_unlock(&player.lock);
    return event;
}

/* Waits for an event. Each is delivered at its time, or to the first that waits
 * after it, to whichever set it came. */
static nvmlReturn_t play_wait(const struct call *call, nvmlEventSet_t set, const nvmlEventData_t *data, unsigned milliseconds)
{
    char name[HANDLE_NAME];
    handle_name(HANDLE_EVENTS, set.handle, name);
    bool valid = data && strcmp(name, "null") && strcmp(name, "unknown");
    if (atomic_load(&player.sessions) == 0 || !valid || never_recorded(call) == NVML_ERROR_FUNCTION_NOT_FOUND)
        return play(call);
    int64_t deadline = recorded_now() + (int64_t)milliseconds * 1000000;
    const struct answer *event = take_event(deadline);
    sleep_until(event ? event->time : deadline);
    return event ? play_answer(call, "", event) : NVML_ERROR_TIMEOUT;
}

/* Writes the text of a return code. The lock is held. */
static void describe(struct text *text, const struct call *call)
{
    uint64_t code = call->arguments[0].number;
    struct text key = {0};
    write_call(&key, call, true);
    const struct answer *answer = player.loaded && key.bytes ? answer_at(recording_find(&player.recording, key.bytes), recorded_now()) : NULL;
    text_free(&key);
    if (!answer || !read_string(&(struct reading){.words = answer->words}, text)) {
        text->length = 0;
        text_format(text, code == NVML_ERROR_DRIVER_NOT_LOADED ? "Driver Not Loaded" : "return code %llu", (unsigned long long)code);
    }
    if (code == NVML_ERROR_DRIVER_NOT_LOADED && player.failure.bytes)
        text_format(text, ": %s", player.failure.bytes);
}

/* A text that lasts. One that has changed is not freed: callers keep it. */
static const char *play_string(const struct call *call)
{
    const char *string = "return code";
    uint64_t code = call->arguments[0].number;
    struct text text = {0};
    pthread_mutex_lock(&player.lock);
    if (!player.loaded && !player.failure.bytes)
        player.loaded = load();
    describe(&text, call);
    if (code < MOST_CODES && text.bytes) {
        char **kept = &player.strings[code];
        if (!*kept || strcmp(*kept, text.bytes)) {
            *kept = text.bytes;
            text = (struct text){0};
        }
        string = *kept;
    }
    pthread_mutex_unlock(&player.lock);
    text_free(&text);
    return string;
}

#define CALL(name, ...)                                                  \
    struct argument arguments[] = {__VA_ARGS__, {.kind = ARGUMENT_END}}; \
    struct call call = {.function = FUNCTION_##name, .arguments = arguments};

#define FUNCTION(name, parameters, passed, ...) \
    nvmlReturn_t name parameters                \
    {                                           \
        CALL(name, __VA_ARGS__)                 \
        return play(&call);                     \
    }

#define WAIT(name, parameters, passed, ...)      \
    nvmlReturn_t name parameters                 \
    {                                            \
        CALL(name, __VA_ARGS__)                  \
        return play_wait(&call, set, data, milliseconds); \
    }

#define TEXT_FUNCTION(name, parameters, passed, ...) \
    const char *name parameters                      \
    {                                                \
        CALL(name, __VA_ARGS__)                      \
        return play_string(&call);                   \
    }

#include "functions.def"
