/* stub-hostengine: a host engine over a socket.
 *
 *   stub-hostengine [--with-parent] host:port | unix:///path
 *
 * It prints "listening <address>" once it does; with --with-parent it ends at
 * the end of its standard input, so that it never outlives the test that
 * started it. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "address.h"
#include "engine.h"
#include "faults.h"

static struct engine *engine;

/* Serves one client until it is gone. It has a connection from its first
 * CALL_CONNECT on; a client that only inspects has none. */
static void *serve(void *argument)
{
    int fd = (int)(intptr_t)argument;
    unsigned connection = 0;
    int32_t call;
    struct wire request = {0}, reply = {0};
    while (wire_receive(fd, &call, &request)) {
        dcgmReturn_t status;
        wire_reset(&reply);
        if (call == CALL_CONNECT && !connection) {
            status = (dcgmReturn_t)fault(call_name(CALL_CONNECT));
            if (status == DCGM_ST_OK && !(connection = engine_connect(engine, wire_u32(&request))))
                status = DCGM_ST_MAX_LIMIT;
        } else if (!connection && call != CALL_INSPECT) {
            status = DCGM_ST_CONNECTION_NOT_VALID;
        } else {
            status = engine_call(engine, connection, (enum call)call, &request, &reply);
        }
        if (!wire_send(fd, (int32_t)status, &reply))
            break;
    }
    if (connection)
        engine_disconnect(engine, connection);
    wire_free(&request);
    wire_free(&reply);
    close(fd);
    return NULL;
}

static void *end_with_parent(void *unused)
{
    char byte;
    (void)unused;
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
    _exit(0);
}

static void detach(void *(*function)(void *), void *argument)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, function, argument))
        abort();
    pthread_detach(thread);
}

static void announce(const char *address, int fd)
{
    unsigned port = address_port(fd);
    const char *colon = strrchr(address, ':');
    if (port && colon)
        printf("listening %.*s:%u\n", (int)(colon - address), address, port);
    else
        printf("listening %s\n", address);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN);
    bool with_parent = argc == 3 && !strcmp(argv[1], "--with-parent");
    if (argc != 2 + with_parent) {
        fprintf(stderr, "usage: %s [--with-parent] host:port | unix:///path\n", argv[0]);
        return 2;
    }
    const char *address = argv[argc - 1];
    engine = engine_start(true);
    if (!engine) {
        fprintf(stderr, "%s: no hardware is scripted: set DRA_STUB_HARDWARE\n", argv[0]);
        return 1;
    }
    int listener = address_listen(address);
    if (listener < 0) {
        perror(address);
        return 1;
    }
    if (with_parent)
        detach(end_with_parent, NULL);
    announce(address, listener);
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        if (fd < 0)
            continue;
        address_hurry(fd);
        detach(serve, (void *)(intptr_t)fd);
    }
}
