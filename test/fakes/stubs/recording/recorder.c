/* libnvidia-ml-recorder.so: passes every call on to the real library, and
 * writes it with its answer into a recording. The caller sees what it would
 * see without it. */
#include "call.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

/* How much a recording may be, in bytes. */
#define DEFAULT_LIMIT (256ull << 20)
/* So much of it is kept for the last line. */
#define LAST_LINE 64

/* The return codes whose texts are recorded at the beginning, and the one
 * beyond them. */
#define MOST_CODES 40

static struct {
    pthread_once_t once;
    int64_t start;
    void *functions[FUNCTIONS]; /* of the real library */
    bool loaded;

    pthread_mutex_t lock; /* of what follows */
    int file;             /* -1: nothing is recorded, or nothing more */
    uint64_t written, limit;
} recorder = {.once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER, .file = -1};

static int64_t now_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void complain(const char *what, const char *why)
{
    fprintf(stderr, "libnvidia-ml-recorder: %s: %s\n", what, why);
}

/* Writes all bytes or none. The lock is held. */
static bool put(const char *bytes, size_t length)
{
    for (size_t done = 0; done < length;) {
        ssize_t wrote = write(recorder.file, bytes + done, length - done);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0) {
            complain("recording stopped", wrote < 0 ? strerror(errno) : "nothing was written");
            if (ftruncate(recorder.file, (off_t)recorder.written))
                complain("cut the last line off", strerror(errno));
            return false;
        }
        done += (size_t)wrote;
    }
    recorder.written += length;
    return true;
}

static void stop(void)
{
    close(recorder.file);
    recorder.file = -1;
}

/* Records a line, or the end of the recording if there is no room for it. */
static void record(struct text *line)
{
    pthread_mutex_lock(&recorder.lock);
    if (recorder.file < 0) {
        pthread_mutex_unlock(&recorder.lock);
        return;
    }
    if (line->failed || recorder.written + line->length + LAST_LINE > recorder.limit) {
        struct text last = {0};
        text_format(&last, "stopped %s\n", line->failed ? "memory" : "limit");
        if (last.bytes)
            put(last.bytes, last.length);
        text_free(&last);
        stop();
    } else if (!put(line->bytes, line->length)) {
        stop();
    }
    pthread_mutex_unlock(&recorder.lock);
}

static void open_library(void)
{
    const char *path = getenv("DRA_RECORDER_LIBRARY");
    if (!path || !*path)
        path = "libnvidia-ml.so.1";
    /* The library's own calls must not come here, where its functions have
     * been found before. */
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (!library) {
        complain("open the real library", dlerror());
        return;
    }
    if (dlsym(library, "nvmlInit_v2") == (void *)nvmlInit_v2) {
        complain("open the real library", "it is this one: DRA_RECORDER_LIBRARY must name another");
        return;
    }
    for (int i = 0; i < FUNCTIONS; i++)
        recorder.functions[i] = dlsym(library, function_names[i]);
    recorder.loaded = true;
}

static int open_file(const char *path)
{
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (file < 0 || flock(file, LOCK_EX | LOCK_NB) || ftruncate(file, 0)) {
        complain(path, errno == EWOULDBLOCK ? "another process records into it" : strerror(errno));
        if (file >= 0)
            close(file);
        return -1;
    }
    return file;
}

/* Records what a player must know before the first call. */
static void record_preamble(void)
{
    struct text text = {0};
    text_format(&text, RECORDING_MAGIC "%d %lld\n", RECORDING_VERSION, (long long)(now_ns(CLOCK_REALTIME) / 1000));
    for (int i = 0; recorder.loaded && i < FUNCTIONS; i++)
        if (!recorder.functions[i])
            text_format(&text, "lacks %s\n", function_names[i]);
    __typeof__(nvmlErrorString) *describe = (__typeof__(nvmlErrorString) *)recorder.functions[FUNCTION_nvmlErrorString];
    for (unsigned code = 0; describe && code <= MOST_CODES; code++) {
        unsigned result = code < MOST_CODES ? code : NVML_ERROR_UNKNOWN;
        const char *string = describe((nvmlReturn_t)result);
        text_format(&text, "0 0 nvmlErrorString %u = 0 ", result);
        text_quote(&text, string ? string : "");
        text_add(&text, "\n", 1);
    }
    record(&text);
    text_free(&text);
}

static void start(void)
{
    const char *path = getenv("DRA_RECORDING"), *limit = getenv("DRA_RECORDING_LIMIT");
    open_library();
    recorder.limit = limit && *limit ? strtoull(limit, NULL, 10) : DEFAULT_LIMIT;
    if (path && *path)
        recorder.file = open_file(path);
    else
        complain("DRA_RECORDING", "it names no file: nothing is recorded");
    recorder.start = now_ns(CLOCK_MONOTONIC);
    if (recorder.file >= 0)
        record_preamble();
}

/* A call on its way through the recorder. */
struct passage {
    struct call call;
    struct text line; /* as far as it is known before the call */
    int64_t began;
    char freed[HANDLE_NAME]; /* the name of the object that the call frees */
};

/* Notes the call before it is made, because its answer may lie where its
 * arguments were. Returns the real function; NULL: there is none. */
static void *begin(struct passage *passage)
{
    pthread_once(&recorder.once, start);
    write_call(&passage->line, &passage->call, false);
    /* A handle is taken out first: once it is free, another thread may be
     * given the same. */
    for (const struct argument *a = passage->call.arguments; a->kind != ARGUMENT_END; a++)
        if (a->kind == ARGUMENT_FREED) {
            handle_name(a->handle, a->pointer, passage->freed);
            handle_remove(a->handle, a->pointer);
        }
    passage->began = now_ns(CLOCK_MONOTONIC);
    return recorder.functions[passage->call.function];
}

/* What a function returns that the real library does not have. */
static nvmlReturn_t missing(void)
{
    return recorder.loaded ? NVML_ERROR_FUNCTION_NOT_FOUND : NVML_ERROR_LIBRARY_NOT_FOUND;
}

/* Handles that a call was to free and has not are there again. */
static void keep_freed(const struct passage *passage)
{
    char name[HANDLE_NAME];
    for (const struct argument *a = passage->call.arguments; a->kind != ARGUMENT_END; a++)
        if (a->kind == ARGUMENT_FREED && strcmp(passage->freed, "unknown"))
            handle_add(a->handle, a->pointer, passage->freed, name);
}

/* Records a call whose answer `write` appends to its line. */
static void record_passage(struct passage *passage, int64_t ended)
{
    struct text line = {0};
    text_format(&line, "%lld %lld ", (long long)(passage->began - recorder.start), (long long)(ended - passage->began));
    if (passage->line.bytes)
        text_add(&line, passage->line.bytes, passage->line.length);
    text_add(&line, "\n", 1);
    line.failed |= passage->line.failed;
    record(&line);
    text_free(&line);
    text_free(&passage->line);
}

static void finish(struct passage *passage, nvmlReturn_t status)
{
    int64_t ended = now_ns(CLOCK_MONOTONIC);
    if (status != NVML_SUCCESS)
        keep_freed(passage);
    else
        fill_objects(&passage->call);
    write_answer(&passage->line, &passage->call, status);
    record_passage(passage, ended);
}

static void finish_text(struct passage *passage, const char *string)
{
    int64_t ended = now_ns(CLOCK_MONOTONIC);
    text_add(&passage->line, " = 0 ", 5);
    text_quote(&passage->line, string ? string : "");
    record_passage(passage, ended);
}

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#define BEGIN(name, ...)                                                                        \
    struct argument arguments[] = {__VA_ARGS__, {.kind = ARGUMENT_END}};                        \
    struct passage passage = {.call = {.function = FUNCTION_##name, .arguments = arguments}};   \
    __typeof__(name) *real = (__typeof__(name) *)begin(&passage);

#define FUNCTION(name, parameters, passed, ...)            \
    nvmlReturn_t name parameters                           \
    {                                                      \
        BEGIN(name, __VA_ARGS__)                           \
        nvmlReturn_t status = real ? real passed : missing(); \
        finish(&passage, status);                          \
        return status;                                     \
    }

#define WAIT FUNCTION

#define TEXT_FUNCTION(name, parameters, passed, ...)                      \
    const char *name parameters                                           \
    {                                                                     \
        BEGIN(name, __VA_ARGS__)                                          \
        const char *string = real ? real passed : "The library is not there"; \
        finish_text(&passage, string);                                    \
        return string;                                                    \
    }

#include "functions.def"
