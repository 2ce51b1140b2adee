#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void text_free(struct text *text)
{
    free(text->bytes);
    *text = (struct text){0};
}

/* Makes room for more bytes and a zero. */
static bool grow(struct text *text, size_t more)
{
    size_t needed = text->length + more + 1;
    if (text->failed)
        return false;
    if (needed <= text->capacity)
        return true;
    size_t capacity = needed < 256 ? 256 : 2 * needed;
    char *bytes = realloc(text->bytes, capacity);
    if (!bytes) {
        text->failed = true;
        return false;
    }
    text->bytes = bytes;
    text->capacity = capacity;
    return true;
}

void text_add(struct text *text, const char *bytes, size_t length)
{
    if (!grow(text, length))
        return;
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = 0;
}

void text_format(struct text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0 || !grow(text, (size_t)length))
        return;
    va_start(arguments, format);
    vsnprintf(text->bytes + text->length, (size_t)length + 1, format, arguments);
    va_end(arguments);
    text->length += (size_t)length;
}

void text_hex(struct text *text, const void *bytes, size_t length)
{
    static const char digits[] = "0123456789abcdef";
    if (!grow(text, 2 * length))
        return;
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = ((const unsigned char *)bytes)[i];
        text->bytes[text->length++] = digits[byte >> 4];
        text->bytes[text->length++] = digits[byte & 15];
    }
    text->bytes[text->length] = 0;
}

void text_quote(struct text *text, const char *string)
{
    text_add(text, "\"", 1);
    for (; *string; string++)
        if (*string > ' ' && *string < 0x7f && *string != '"' && *string != '\\')
            text_add(text, string, 1);
        else
            text_format(text, "\\x%02x", (unsigned char)*string);
    text_add(text, "\"", 1);
}
