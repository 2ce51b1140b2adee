/* The frames that a client and stub-hostengine exchange: a length, a code (the
 * call of a request, the status of a reply) and that many bytes of arguments,
 * in the byte order of the machine, since both ends run on one. The protocol
 * is this stub's own. */
#ifndef STUB_DCGM_WIRE_H
#define STUB_DCGM_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A growing buffer that is written at its end and read from its beginning.
 * Reading past the end gives zeros and sets broken, so that a decoder checks
 * once, at the end. All zeros is an empty buffer. */
struct wire {
    unsigned char *bytes;
    size_t length;
    size_t capacity;
    size_t offset;
    bool broken;
};

void wire_free(struct wire *wire);
void wire_reset(struct wire *wire);

void wire_put(struct wire *wire, const void *bytes, size_t length);
void wire_put_u32(struct wire *wire, uint32_t value);
void wire_put_i64(struct wire *wire, int64_t value);
void wire_put_f64(struct wire *wire, double value);
void wire_put_string(struct wire *wire, const char *text);

void wire_get(struct wire *wire, void *bytes, size_t length);
uint32_t wire_u32(struct wire *wire);
int64_t wire_i64(struct wire *wire);
double wire_f64(struct wire *wire);
/* Copies a string, cut to fit, always terminated. */
void wire_string(struct wire *wire, char *text, size_t size);

/* Send or receive one frame. False: the other end is gone. */
bool wire_send(int fd, int32_t code, const struct wire *body);
bool wire_receive(int fd, int32_t *code, struct wire *body);

#endif
