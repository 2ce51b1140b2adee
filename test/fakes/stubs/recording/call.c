#include "call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct layout plain = {0};
const struct layout versioned = {.key = sizeof(unsigned int)};
const struct layout event_data = {.special = DEVICE_HANDLE, .offset = offsetof(nvmlEventData_t, device), .size = sizeof(nvmlDevice_t)};
const struct layout gpu_instance_info = {.special = DEVICE_HANDLE, .offset = offsetof(nvmlGpuInstanceInfo_t, device), .size = sizeof(nvmlDevice_t)};
const struct layout process_sample = {
    .special = WALL_TIME, .offset = offsetof(nvmlProcessUtilizationSample_t, timeStamp), .size = sizeof(uint64_t),
};
const struct layout field_value = {
    .key = offsetof(nvmlFieldValue_t, timestamp), .status = offsetof(nvmlFieldValue_t, nvmlReturn),
    .special = WALL_TIME, .offset = offsetof(nvmlFieldValue_t, timestamp), .size = sizeof(uint64_t),
};
const struct layout gpm_metric = {
    .key = sizeof(unsigned int), .status = offsetof(nvmlGpmMetric_t, nvmlReturn),
    .special = POINTERS, .offset = offsetof(nvmlGpmMetric_t, metricInfo), .size = sizeof(nvmlGpmMetricMetricInfo_t),
};

const char *const function_names[FUNCTIONS] = {
#define FUNCTION(name, parameters, passed, ...) #name,
#define WAIT(name, parameters, passed, ...) #name,
#define TEXT_FUNCTION(name, parameters, passed, ...) #name,
#include "functions.def"
};

void write_element_key(struct text *text, const struct argument *elements, uint64_t i)
{
    text_hex(text, (const char *)elements->pointer + i * elements->size, elements->layout->key);
}

/* " *" or " -": whether the caller has given memory for the answer. */
static void write_pointer(struct text *text, const void *pointer)
{
    text_add(text, pointer ? " *" : " -", 2);
}

/* A handle that is no part of the key, unless it is not valid. */
static void write_object(struct text *text, const struct argument *a, bool key)
{
    char name[HANDLE_NAME];
    handle_name(a->handle, a->pointer, name);
    bool known = strcmp(name, "null") && strcmp(name, "unknown");
    if (!known || !key)
        text_format(text, known ? " ~%s" : " %s", name);
}

static void write_argument(struct text *text, const struct argument *a, bool key)
{
    char name[HANDLE_NAME];
    switch (a->kind) {
    case ARGUMENT_NUMBER:
        text_format(text, " %llu", (unsigned long long)a->number);
        break;
    case ARGUMENT_CONTEXT:
        if (!key)
            text_format(text, " ~%llu", (unsigned long long)a->number);
        break;
    case ARGUMENT_STRING:
        text_add(text, a->pointer ? " " : " -", a->pointer ? 1 : 2);
        if (a->pointer)
            text_quote(text, a->pointer);
        break;
    case ARGUMENT_HANDLE:
        handle_name(a->handle, a->pointer, name);
        text_format(text, " %s", name);
        break;
    case ARGUMENT_CONTENT:
        handle_content(a->handle, a->pointer, name);
        text_format(text, " %s", name);
        break;
    case ARGUMENT_OBJECT:
    case ARGUMENT_FILLED:
    case ARGUMENT_FREED:
        write_object(text, a, key);
        break;
    case ARGUMENT_OUT:
        write_pointer(text, a->pointer);
        if (a->pointer && a->layout && a->layout->key)
            text_hex(text, a->pointer, a->layout->key);
        break;
    case ARGUMENT_TEXT:
        write_pointer(text, a->pointer);
        if (!key)
            text_format(text, " ~%llu", (unsigned long long)a->number);
        break;
    case ARGUMENT_LIST:
        write_pointer(text, a->pointer);
        write_pointer(text, a->count);
        if (!key)
            text_format(text, " ~%llu", (unsigned long long)a->number);
        break;
    case ARGUMENT_ELEMENTS:
        write_pointer(text, a->number ? a->pointer : NULL);
        for (uint64_t i = 0; !key && i < a->number; i++) {
            text_add(text, " #", 2);
            write_element_key(text, a, i);
        }
        break;
    case ARGUMENT_FOUND:
    case ARGUMENT_CREATED:
        write_pointer(text, a->pointer);
        break;
    case ARGUMENT_END:
        break;
    }
}

void write_call(struct text *text, const struct call *call, bool key)
{
    text_format(text, "%s", function_names[call->function]);
    for (const struct argument *a = call->arguments; a->kind != ARGUMENT_END; a++)
        write_argument(text, a, key);
}

bool outside_key(const char *word)
{
    return *word == '~' || *word == '#';
}

/* Writes a structure: a number, or "x" and its bytes, and after an @ the
 * device that it names. Pointers are zero. */
static void write_bytes(struct text *text, const void *from, size_t size, const struct layout *layout)
{
    unsigned long long number = 0;
    if (!layout) {
        number = size == sizeof(uint32_t) ? *(const uint32_t *)from : *(const uint64_t *)from;
        text_format(text, " %llu", number);
        return;
    }
    static const char zeros[sizeof(nvmlGpmMetricMetricInfo_t)];
    text_add(text, " x", 2);
    if (layout->special != DEVICE_HANDLE && layout->special != POINTERS) {
        text_hex(text, from, size);
        return;
    }
    size_t after = layout->offset + layout->size;
    text_hex(text, from, layout->offset);
    text_hex(text, zeros, layout->size);
    text_hex(text, (const char *)from + after, size - after);
    if (layout->special == DEVICE_HANDLE) {
        void *device;
        char name[HANDLE_NAME];
        memcpy(&device, (const char *)from + layout->offset, sizeof device);
        handle_add(HANDLE_DEVICE, device, NULL, name);
        text_format(text, "@%s", name);
    }
}

/* Names a handle that was found or created. */
static void write_handle(struct text *text, const struct call *call, const struct argument *a)
{
    void *handle;
    char name[HANDLE_NAME], parent[HANDLE_NAME], wish[2 * HANDLE_NAME];
    memcpy(&handle, a->pointer, sizeof handle);
    if (a->part) {
        handle_name(HANDLE_DEVICE, call->arguments[0].pointer, parent);
        snprintf(wish, sizeof wish, "%.40sm%llu", parent, (unsigned long long)call->arguments[1].number);
    }
    handle_add(a->handle, handle, a->part ? wish : NULL, name);
    text_format(text, " %s", name);
}

/* A list is its length, which is also there where the call has failed, and its
 * elements. */
static void write_list(struct text *text, const struct argument *a, bool succeeded)
{
    if (!a->count) {
        text_add(text, " -", 2);
        return;
    }
    text_format(text, " %u", *a->count);
    for (unsigned i = 0; succeeded && a->pointer && i < *a->count && i < a->number; i++)
        write_bytes(text, (const char *)a->pointer + i * a->size, a->size, a->layout);
}

static void write_output(struct text *text, const struct call *call, const struct argument *a, bool succeeded)
{
    bool written = succeeded && a->pointer;
    switch (a->kind) {
    case ARGUMENT_LIST:
        write_list(text, a, succeeded);
        return;
    case ARGUMENT_ELEMENTS:
        for (uint64_t i = 0; written && i < a->number; i++)
            write_bytes(text, (const char *)a->pointer + i * a->size, a->size, a->layout);
        return;
    case ARGUMENT_OUT:
        if (written)
            write_bytes(text, a->pointer, a->size, a->layout);
        break;
    case ARGUMENT_TEXT:
        if (written) {
            text_add(text, " ", 1);
            text_quote(text, a->pointer);
        }
        break;
    case ARGUMENT_FOUND:
    case ARGUMENT_CREATED:
        if (written)
            write_handle(text, call, a);
        break;
    default:
        return;
    }
    if (!written)
        text_add(text, " -", 2);
}

void write_answer(struct text *text, const struct call *call, nvmlReturn_t status)
{
    text_format(text, " = %u", (unsigned)status);
    for (const struct argument *a = call->arguments; a->kind != ARGUMENT_END; a++)
        write_output(text, call, a, status == NVML_SUCCESS);
}

void fill_objects(const struct call *call)
{
    for (const struct argument *a = call->arguments; a->kind != ARGUMENT_END; a++) {
        if (a->kind != ARGUMENT_FILLED)
            continue;
        struct text key = {0};
        write_call(&key, call, true);
        char *words = key.bytes ? strchr(key.bytes, ' ') : NULL;
        for (char *space = words; space && (space = strchr(space + 1, ' '));)
            *space = '.';
        if (words)
            handle_fill(a->handle, a->pointer, words + 1);
        text_free(&key);
    }
}

/* Takes the next word of an answer. */
static bool next_word(struct reading *reading, const char **word, size_t *length)
{
    const char *at = reading->words;
    if (*at == ' ')
        at++;
    *word = at;
    *length = strcspn(at, " \n");
    reading->words = at + *length;
    return *length > 0;
}

void skip_word(struct reading *reading)
{
    const char *word;
    size_t length;
    next_word(reading, &word, &length);
}

bool read_number(struct reading *reading, uint64_t *number)
{
    const char *word;
    char *end;
    size_t length;
    if (!next_word(reading, &word, &length) || *word < '0' || *word > '9')
        return false;
    *number = strtoull(word, &end, 10);
    return end == word + length;
}

bool read_name(struct reading *reading, char name[HANDLE_NAME])
{
    const char *word;
    size_t length;
    if (!next_word(reading, &word, &length) || length >= HANDLE_NAME || *word == '-')
        return false;
    memcpy(name, word, length);
    name[length] = 0;
    return true;
}

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte of two digits; -1: they are none. */
static int byte_of(const char *digits)
{
    int high = digit(digits[0]), low = high < 0 ? -1 : digit(digits[1]);
    return low < 0 ? -1 : 16 * high + low;
}

bool read_string(struct reading *reading, struct text *text)
{
    const char *word;
    size_t length;
    if (!next_word(reading, &word, &length) || length < 2 || word[0] != '"' || word[length - 1] != '"')
        return false;
    text_add(text, "", 0);
    for (size_t i = 1; i < length - 1; i++) {
        char c = word[i];
        if (c == '\\') {
            int byte = i + 4 < length && word[i + 1] == 'x' ? byte_of(word + i + 2) : -1;
            if (byte < 0)
                return false;
            c = (char)byte;
            i += 3;
        }
        text_add(text, &c, 1);
    }
    return !text->failed;
}

/* Reads the special part of a structure, which lies in bytes already. */
static bool read_special(char *bytes, const char *name, int64_t later, const struct layout *layout)
{
    uint64_t time;
    void *device;
    switch (layout->special) {
    case DEVICE_HANDLE:
        device = *name ? handle_make(HANDLE_DEVICE, name) : NULL;
        memcpy(bytes + layout->offset, &device, sizeof device);
        return device;
    case WALL_TIME:
        memcpy(&time, bytes + layout->offset, sizeof time);
        if (time)
            time += (uint64_t)later;
        memcpy(bytes + layout->offset, &time, sizeof time);
        return true;
    default:
        return true;
    }
}

bool read_bytes(struct reading *reading, void *to, size_t size, const struct layout *layout)
{
    const char *word;
    char *bytes = to, name[HANDLE_NAME] = "";
    size_t length;
    uint64_t number;
    if (!layout) {
        if (!read_number(reading, &number) || (size == sizeof(uint32_t) && number > UINT32_MAX))
            return false;
        if (size == sizeof(uint32_t))
            *(uint32_t *)to = (uint32_t)number;
        else
            *(uint64_t *)to = number;
        return true;
    }
    if (!next_word(reading, &word, &length) || length < 1 + 2 * size || *word != 'x')
        return false;
    for (size_t i = 0; i < size; i++) {
        int byte = byte_of(word + 1 + 2 * i);
        if (byte < 0)
            return false;
        bytes[i] = (char)byte;
    }
    const char *rest = word + 1 + 2 * size;
    size_t left = length - 1 - 2 * size;
    if (left > 1 && left <= HANDLE_NAME && *rest == '@') {
        memcpy(name, rest + 1, left - 1);
        name[left - 1] = 0;
    } else if (left) {
        return false;
    }
    return read_special(bytes, name, reading->later, layout);
}

/* Whether a word could be one of an answer. */
static bool word_valid(const char *word, size_t length)
{
    if (*word == '"') {
        struct reading reading = {.words = word};
        struct text text = {0};
        bool valid = read_string(&reading, &text);
        text_free(&text);
        return valid;
    }
    bool device = false;
    for (size_t i = 0; i < length; i++) {
        bool hex = *word == 'x' && !device;
        device |= hex && word[i] == '@';
        if (hex && i > 0 && digit(word[i]) < 0 && word[i] != '@')
            return false;
        if (word[i] != '-' && word[i] != '@' && word[i] != '+' && !(word[i] >= '0' && word[i] <= '9') && !(word[i] >= 'a' && word[i] <= 'z'))
            return false;
    }
    return true;
}

bool words_valid(const char *words, size_t length)
{
    struct reading reading = {.words = words};
    const char *word, *end = words + length;
    while (reading.words < end) {
        size_t size;
        if (!next_word(&reading, &word, &size) || !word_valid(word, size))
            return false;
    }
    return true;
}
