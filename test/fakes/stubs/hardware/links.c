/* Values of single NVLinks. A script may say what a link has transferred, or
 * what all have together; each follows from the other. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store.h"

static long link_count(int gpu)
{
    const struct value *count = table_find(store.table, gpu, "nvlink.count");
    return value_none(count) ? 0 : (long)count->integer;
}

static const struct value *scripted_link(int gpu, long link, const char *rest)
{
    char key[HARDWARE_TEXT];
    snprintf(key, sizeof key, "nvlink.%ld.%s", link, rest);
    return table_find(store.table, gpu, key);
}

static bool transferred(const char *rest)
{
    return !strcmp(rest, "tx_bytes") || !strcmp(rest, "rx_bytes");
}

/* What a link has of a total that no link is scripted for. */
static struct value share(const struct value *total, long links)
{
    struct value value = *total;
    value.start /= (double)links;
    value.integer /= links;
    value.rate /= (double)links;
    snprintf(value.text, sizeof value.text, "%.0f+%g/s", value.start, value.rate);
    return value;
}

static bool single(int gpu, long link, const char *rest, struct value *value)
{
    if (link < 0 || link >= link_count(gpu))
        return false;
    const struct value *found = scripted_link(gpu, link, rest);
    if (found) {
        *value = *found;
        return true;
    }
    if (transferred(rest)) {
        char key[HARDWARE_TEXT];
        snprintf(key, sizeof key, "nvlink.%s", rest);
        const struct value *total = table_find(store.table, gpu, key);
        if (!value_none(total))
            *value = share(total, link_count(gpu));
        return !value_none(total);
    }
    for (const struct setting *setting = model_link; setting->key; setting++)
        if (!strcmp(setting->key, rest)) {
            *value = value_parse(setting->value);
            return true;
        }
    return false;
}

static bool total(int gpu, const char *rest, struct value *value)
{
    char key[HARDWARE_TEXT];
    snprintf(key, sizeof key, "nvlink.%s", rest);
    const struct value *whole = table_find(store.table, gpu, key);
    if (value_none(whole) || link_count(gpu) == 0)
        return false;
    *value = *whole;
    if (whole->scripted || !store.table->links)
        return true;
    struct value sum = {.numeric = true};
    for (long link = 0; link < link_count(gpu); link++) {
        struct value one;
        if (!single(gpu, link, rest, &one) || value_none(&one))
            continue;
        sum.start += one.start;
        sum.integer += one.integer;
        sum.rate += one.rate;
    }
    snprintf(sum.text, sizeof sum.text, "%.0f+%g/s", sum.start, sum.rate);
    *value = sum;
    return true;
}

bool link_value(int gpu, const char *key, struct value *value, bool *found)
{
    if (strncmp(key, "nvlink.", 7))
        return false;
    key += 7;
    if (isdigit((unsigned char)*key)) {
        char *rest;
        long link = strtol(key, &rest, 10);
        *found = *rest == '.' && single(gpu, link, rest + 1, value);
        return true;
    }
    if (!transferred(key))
        return false;
    *found = total(gpu, key, value);
    return true;
}
