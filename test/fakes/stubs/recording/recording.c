#include "recording.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call.h"

/* No recording is larger; see DRA_RECORDING_LIMIT. */
#define MOST_BYTES (2048ull << 20)

struct key {
    char *text; /* NULL: the place is free */
    size_t first, count;
};

static size_t place_of(const struct recording *r, const char *text)
{
    uint64_t hash = 14695981039346656037ull;
    for (const char *at = text; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 1099511628211ull;
    size_t place = hash & (r->key_capacity - 1);
    while (r->keys[place].text && strcmp(r->keys[place].text, text))
        place = (place + 1) & (r->key_capacity - 1);
    return place;
}

/* Doubles the table, in which answers refer to keys by their place. */
static bool grow_keys(struct recording *r)
{
    struct recording larger = {.key_capacity = r->key_capacity ? 2 * r->key_capacity : 1024};
    uint32_t *moved = calloc(r->key_capacity + 1, sizeof *moved);
    larger.keys = calloc(larger.key_capacity, sizeof *larger.keys);
    if (!moved || !larger.keys) {
        free(moved);
        free(larger.keys);
        return false;
    }
    for (size_t i = 0; i < r->key_capacity; i++)
        if (r->keys[i].text) {
            size_t place = place_of(&larger, r->keys[i].text);
            larger.keys[place] = r->keys[i];
            moved[i] = (uint32_t)place;
        }
    for (size_t i = 0; i < r->count; i++)
        r->all[i].key = moved[r->all[i].key];
    free(moved);
    free(r->keys);
    r->keys = larger.keys;
    r->key_capacity = larger.key_capacity;
    return true;
}

static bool add(struct recording *r, const char *key, struct answer answer)
{
    if (2 * r->key_count >= r->key_capacity && !grow_keys(r))
        return false;
    if (r->count == r->capacity) {
        size_t capacity = r->capacity ? 2 * r->capacity : 1024;
        struct answer *all = realloc(r->all, capacity * sizeof *all);
        if (!all)
            return false;
        r->all = all;
        r->capacity = capacity;
    }
    size_t place = place_of(r, key);
    if (!r->keys[place].text) {
        if (!(r->keys[place].text = strdup(key)))
            return false;
        r->key_count++;
    }
    answer.key = (uint32_t)place;
    answer.line = r->line;
    r->all[r->count++] = answer;
    return true;
}

static int by_key_and_time(const void *one, const void *two)
{
    const struct answer *a = one, *b = two;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    if (a->time != b->time)
        return a->time < b->time ? -1 : 1;
    return a->line < b->line ? -1 : a->line > b->line;
}

static void sort(struct recording *r)
{
    if (r->count)
        qsort(r->all, r->count, sizeof *r->all, by_key_and_time);
    for (size_t i = 0; i < r->count; i++) {
        struct key *key = &r->keys[r->all[i].key];
        if (!key->count)
            key->first = i;
        key->count++;
    }
}

/* A line while it is read. */
struct line {
    char *words[2]; /* before and after the = */
    int64_t began, took;
    unsigned status;
};

static bool is_function(const char *name)
{
    for (int i = 0; i < FUNCTIONS; i++)
        if (!strcmp(name, function_names[i]))
            return true;
    return false;
}

/* Reads a number that ends with a character. */
static bool number(char **at, char end, unsigned long long most, int64_t *value)
{
    char *stop;
    if (**at < '0' || **at > '9')
        return false;
    errno = 0;
    unsigned long long got = strtoull(*at, &stop, 10);
    if (errno || got > most || *stop != end)
        return false;
    *value = (int64_t)got;
    *at = end ? stop + 1 : stop;
    return true;
}

/* Takes the line of a call apart. NULL, or what is wrong with it. */
static const char *parse(char *text, struct line *line)
{
    int64_t status;
    if (!number(&text, ' ', INT64_MAX / 2, &line->began) || !number(&text, ' ', INT64_MAX / 2, &line->took))
        return "it does not begin with a time and a duration";
    char *answer = strstr(text, " = ");
    if (!answer)
        return "it has no answer";
    *answer = 0;
    line->words[0] = text;
    text = answer + 3;
    bool more = text[strspn(text, "0123456789")] == ' ';
    if (!number(&text, more ? ' ' : 0, UINT32_MAX, &status))
        return "it has no return code";
    line->status = (unsigned)status;
    line->words[1] = text;
    size_t length = strlen(text);
    if ((more && !length) || !words_valid(text, length))
        return "its answer is not readable";
    return NULL;
}

/* Adds the answers of single elements, whose keys are words beside the call. */
static bool add_elements(struct recording *r, const char *key, const char *first, struct line *line)
{
    struct answer answer = {.time = line->began, .words = line->words[1]};
    for (const char *word = first; word && *answer.words;) {
        size_t length = strcspn(word, " ");
        struct text text = {0};
        text_format(&text, "%s %.*s", key, (int)length, word);
        bool added = !text.failed && add(r, text.bytes, answer);
        text_free(&text);
        if (!added)
            return false;
        answer.words += strcspn(answer.words, " ");
        answer.words += *answer.words == ' ';
        word = word[length] ? word + length + 1 : NULL;
    }
    return true;
}

/* Adds a call. NULL, or what is wrong. */
static const char *add_call(struct recording *r, struct line *line)
{
    struct text key = {0};
    const char *elements = NULL, *wrong = NULL;
    for (char *word = line->words[0]; word;) {
        char *next = strchr(word, ' ');
        size_t length = next ? (size_t)(next - word) : strlen(word);
        if (*word == '#' && !elements)
            elements = word;
        if (!outside_key(word)) {
            text_add(&key, " ", key.length > 0);
            text_add(&key, word, length);
        }
        word = next ? next + 1 : NULL;
    }
    char *function = line->words[0];
    size_t length = strcspn(function, " ");
    char end = function[length];
    function[length] = 0;
    if (!is_function(function))
        wrong = "it calls a function that this player does not know";
    bool event = !strncmp(function, "nvmlEventSetWait", strlen("nvmlEventSetWait"));
    function[length] = end;

    struct answer answer = {.time = line->began, .status = line->status, .words = line->words[1]};
    /* Whether the library is initialized is not of the recording: the player's
     * caller decides it. */
    bool added = !key.failed && !wrong && (line->status == NVML_ERROR_UNINITIALIZED || add(r, key.bytes, answer));
    if (added && elements)
        added = add_elements(r, key.bytes, elements, line);
    answer.time += line->took;
    if (added && event && line->status == NVML_SUCCESS)
        added = add(r, "event", answer);
    text_free(&key);
    return wrong || added ? wrong : "there is no memory for it";
}

/* Reads one line. NULL, or what is wrong with it. */
static const char *read_line(struct recording *r, char *text)
{
    struct line line;
    if (r->line == 1) {
        size_t length = strlen(RECORDING_MAGIC);
        int64_t version;
        char *at = text + length;
        if (strncmp(text, RECORDING_MAGIC, length))
            return "it is not the first line of a recording";
        if (!number(&at, ' ', UINT32_MAX, &version) || version != RECORDING_VERSION)
            return "its version is not 1";
        return number(&at, 0, INT64_MAX, &r->wall) ? NULL : "it has no time";
    }
    for (const char *at = text; *at; at++)
        if (*at < ' ' || *at > '~')
            return "it has bytes that are not printable";
    if (!strncmp(text, "stopped ", strlen("stopped ")))
        return NULL;
    if (!strncmp(text, "lacks ", strlen("lacks ")))
        return add(r, text, (struct answer){.words = ""}) ? NULL : "there is no memory for it";
    const char *wrong = parse(text, &line);
    return wrong ? wrong : add_call(r, &line);
}

/* Reads a whole file, with a zero after it. NULL: why says what is wrong. */
static char *read_file(const char *path, size_t *length, struct text *why)
{
    FILE *file = fopen(path, "r");
    struct text bytes = {0};
    static char part[1 << 16];
    size_t got = 0;
    while (file && bytes.length <= MOST_BYTES && (got = fread(part, 1, sizeof part, file)) > 0)
        text_add(&bytes, part, got);
    bool broken = !file || ferror(file);
    if (broken)
        text_format(why, "%s", strerror(errno));
    else if (bytes.failed || bytes.length > MOST_BYTES)
        text_format(why, "it is too large");
    else if (!bytes.length)
        text_format(why, "it is empty");
    if (file)
        fclose(file);
    if (why->length)
        text_free(&bytes);
    *length = bytes.length;
    return bytes.bytes;
}

static void unload(struct recording *r)
{
    for (size_t i = 0; i < r->key_capacity; i++)
        free(r->keys[i].text);
    free(r->keys);
    free(r->all);
    free(r->bytes);
    *r = (struct recording){0};
}

bool recording_load(struct recording *r, const char *path, struct text *why)
{
    size_t length;
    *r = (struct recording){0};
    if (!(r->bytes = read_file(path, &length, why)))
        return false;
    const char *wrong = NULL;
    for (char *text = r->bytes, *end = text + length; !wrong && text < end;) {
        char *stop = memchr(text, '\n', (size_t)(end - text));
        r->line++;
        if (!stop) {
            wrong = "it is cut off";
            break;
        }
        *stop = 0;
        wrong = strlen(text) == (size_t)(stop - text) ? read_line(r, text) : "it has bytes that are not printable";
        text = stop + 1;
    }
    if (wrong) {
        text_format(why, "line %lu: %s", r->line, wrong);
        unload(r);
        return false;
    }
    sort(r);
    return true;
}

struct answers recording_find(const struct recording *r, const char *key)
{
    if (!r->key_capacity)
        return (struct answers){0};
    const struct key *found = &r->keys[place_of(r, key)];
    return found->text ? (struct answers){r->all + found->first, found->count} : (struct answers){0};
}

const struct answer *answer_at(struct answers answers, int64_t time)
{
    size_t low = 0, high = answers.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (answers.first[middle].time <= time)
            low = middle + 1;
        else
            high = middle;
    }
    return answers.count ? &answers.first[low ? low - 1 : 0] : NULL;
}
