#include "wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* No call needs more; a longer length is not of this protocol. */
#define LONGEST_FRAME (64u << 20)

void wire_free(struct wire *wire)
{
    free(wire->bytes);
    memset(wire, 0, sizeof *wire);
}

void wire_reset(struct wire *wire)
{
    wire->length = 0;
    wire->offset = 0;
    wire->broken = false;
}

static void reserve(struct wire *wire, size_t more)
{
    if (wire->length + more <= wire->capacity)
        return;
    size_t capacity = wire->capacity ? wire->capacity : 256;
    while (capacity < wire->length + more)
        capacity *= 2;
    wire->bytes = realloc(wire->bytes, capacity);
    if (!wire->bytes)
        abort();
    wire->capacity = capacity;
}

void wire_put(struct wire *wire, const void *bytes, size_t length)
{
    if (!length)
        return;
    reserve(wire, length);
    memcpy(wire->bytes + wire->length, bytes, length);
    wire->length += length;
}

void wire_put_u32(struct wire *wire, uint32_t value) { wire_put(wire, &value, sizeof value); }
void wire_put_i64(struct wire *wire, int64_t value) { wire_put(wire, &value, sizeof value); }
void wire_put_f64(struct wire *wire, double value) { wire_put(wire, &value, sizeof value); }

void wire_put_string(struct wire *wire, const char *text)
{
    size_t length = strlen(text);
    wire_put_u32(wire, (uint32_t)length);
    wire_put(wire, text, length);
}

void wire_get(struct wire *wire, void *bytes, size_t length)
{
    if (wire->broken || length > wire->length - wire->offset) {
        wire->broken = true;
        memset(bytes, 0, length);
        return;
    }
    if (length)
        memcpy(bytes, wire->bytes + wire->offset, length);
    wire->offset += length;
}

uint32_t wire_u32(struct wire *wire)
{
    uint32_t value;
    wire_get(wire, &value, sizeof value);
    return value;
}

int64_t wire_i64(struct wire *wire)
{
    int64_t value;
    wire_get(wire, &value, sizeof value);
    return value;
}

double wire_f64(struct wire *wire)
{
    double value;
    wire_get(wire, &value, sizeof value);
    return value;
}

void wire_string(struct wire *wire, char *text, size_t size)
{
    uint32_t length = wire_u32(wire);
    text[0] = '\0';
    if (wire->broken || length > wire->length - wire->offset) {
        wire->broken = true;
        return;
    }
    size_t kept = length < size ? length : size - 1;
    memcpy(text, wire->bytes + wire->offset, kept);
    text[kept] = '\0';
    wire->offset += length;
}

static bool send_all(int fd, const void *bytes, size_t length, int flags)
{
    const char *next = bytes;
    while (length) {
        ssize_t sent = send(fd, next, length, MSG_NOSIGNAL | flags);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        next += sent;
        length -= (size_t)sent;
    }
    return true;
}

static bool receive_all(int fd, void *bytes, size_t length)
{
    char *next = bytes;
    while (length) {
        ssize_t received = recv(fd, next, length, 0);
        if (received < 0 && errno == EINTR)
            continue;
        if (received <= 0)
            return false;
        next += received;
        length -= (size_t)received;
    }
    return true;
}

struct header {
    uint32_t length;
    int32_t code;
};

bool wire_send(int fd, int32_t code, const struct wire *body)
{
    struct header header = {.length = (uint32_t)body->length, .code = code};
    /* A header that waits for its body does not wait for the other end's word
     * that it has come. */
    return send_all(fd, &header, sizeof header, body->length ? MSG_MORE : 0)
           && send_all(fd, body->bytes, body->length, 0);
}

bool wire_receive(int fd, int32_t *code, struct wire *body)
{
    struct header header;
    wire_reset(body);
    if (!receive_all(fd, &header, sizeof header) || header.length > LONGEST_FRAME)
        return false;
    reserve(body, header.length);
    if (!receive_all(fd, body->bytes, header.length))
        return false;
    body->length = header.length;
    *code = header.code;
    return true;
}
