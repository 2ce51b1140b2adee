#include "session.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "address.h"
#include "engine.h"
#include "scripted.h"

/* The real library's handle of the embedded engine. */
#define EMBEDDED ((dcgmHandle_t)0x7fffffff)
#define MOST_SESSIONS 64

/* A connection. It is freed by the last of those that use it, so that one can
 * end it while another waits in a call. */
struct session {
    dcgmHandle_t handle;
    int fd;
    struct engine *engine; /* of the embedded one */
    unsigned connection;
    unsigned users;
    bool ended;
    pthread_mutex_t turn; /* one call at a time */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned initialized;
static dcgmHandle_t last_handle;
static struct session *sessions[MOST_SESSIONS];

/* Takes a session out of the table: it is not found any more. */
static void forget(struct session *session)
{
    for (unsigned i = 0; i < MOST_SESSIONS; i++)
        if (sessions[i] == session)
            sessions[i] = NULL;
}

/* Ends a session: a call that waits for an answer gets none. */
static void end(struct session *session)
{
    session->ended = true;
    forget(session);
    if (session->fd >= 0)
        shutdown(session->fd, SHUT_RDWR);
}

static void release(struct session *session)
{
    pthread_mutex_lock(&lock);
    bool last = --session->users == 0;
    pthread_mutex_unlock(&lock);
    if (!last)
        return;
    if (session->engine)
        engine_stop(session->engine);
    if (session->fd >= 0)
        close(session->fd);
    pthread_mutex_destroy(&session->turn);
    free(session);
}

static struct session *acquire(dcgmHandle_t handle)
{
    struct session *found = NULL;
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < MOST_SESSIONS && !found; i++)
        if (sessions[i] && sessions[i]->handle == handle)
            found = sessions[i];
    if (found)
        found->users++;
    pthread_mutex_unlock(&lock);
    return found;
}

/* Adds a session with one user: the table. */
static struct session *add(int fd, struct engine *engine)
{
    struct session *session = calloc(1, sizeof *session);
    if (!session)
        abort();
    session->fd = fd;
    session->engine = engine;
    session->users = 1;
    pthread_mutex_init(&session->turn, NULL);
    pthread_mutex_lock(&lock);
    session->handle = engine ? EMBEDDED : ++last_handle;
    for (unsigned i = 0; i < MOST_SESSIONS; i++)
        if (!sessions[i]) {
            sessions[i] = session;
            pthread_mutex_unlock(&lock);
            return session;
        }
    pthread_mutex_unlock(&lock);
    release(session);
    return NULL;
}

dcgmReturn_t session_init(void)
{
    scripted_present(); /* finds the hardware, for the faults of this process */
    pthread_mutex_lock(&lock);
    initialized++;
    pthread_mutex_unlock(&lock);
    return DCGM_ST_OK;
}

static bool ready(void)
{
    pthread_mutex_lock(&lock);
    bool ready = initialized > 0;
    pthread_mutex_unlock(&lock);
    return ready;
}

dcgmReturn_t session_shutdown(void)
{
    struct session *left[MOST_SESSIONS];
    unsigned count = 0;
    pthread_mutex_lock(&lock);
    if (!initialized) {
        pthread_mutex_unlock(&lock);
        return DCGM_ST_UNINITIALIZED;
    }
    if (--initialized == 0)
        for (unsigned i = 0; i < MOST_SESSIONS; i++)
            if (sessions[i]) {
                left[count++] = sessions[i];
                end(sessions[i]);
            }
    pthread_mutex_unlock(&lock);
    for (unsigned i = 0; i < count; i++)
        release(left[i]);
    return DCGM_ST_OK;
}

dcgmReturn_t session_embed(bool automatic, dcgmHandle_t *handle)
{
    if (!ready())
        return DCGM_ST_UNINITIALIZED;
    struct session *session = acquire(EMBEDDED);
    if (session) { /* the one that there is */
        release(session);
        *handle = EMBEDDED;
        return DCGM_ST_OK;
    }
    struct engine *engine = engine_start(automatic);
    if (!engine)
        return DCGM_ST_LIBRARY_NOT_FOUND; /* of the driver */
    session = add(-1, engine);
    if (!session)
        return DCGM_ST_MAX_LIMIT;
    session->connection = engine_connect(engine, false);
    *handle = session->handle;
    return DCGM_ST_OK;
}

static dcgmReturn_t end_session(dcgmHandle_t handle, bool embedded)
{
    struct session *session = acquire(handle);
    if (!session)
        return ready() ? DCGM_ST_CONNECTION_NOT_VALID : DCGM_ST_UNINITIALIZED;
    if ((session->engine != NULL) != embedded) {
        release(session);
        return DCGM_ST_BADPARAM;
    }
    pthread_mutex_lock(&lock);
    bool first = !session->ended;
    end(session);
    pthread_mutex_unlock(&lock);
    if (first)
        release(session); /* the table's */
    release(session);
    return first ? DCGM_ST_OK : DCGM_ST_CONNECTION_NOT_VALID;
}

dcgmReturn_t session_stop(dcgmHandle_t handle) { return end_session(handle, true); }
dcgmReturn_t session_disconnect(dcgmHandle_t handle) { return end_session(handle, false); }

dcgmReturn_t session_connect(const char *address, bool path, bool persist, unsigned timeout_ms, dcgmHandle_t *handle)
{
    if (!ready())
        return DCGM_ST_UNINITIALIZED;
    int fd = address_connect(address, path, timeout_ms);
    if (fd < 0)
        return DCGM_ST_CONNECTION_NOT_VALID;
    struct session *session = add(fd, NULL);
    if (!session)
        return DCGM_ST_MAX_LIMIT;
    dcgmHandle_t opened = session->handle;

    struct wire request = {0};
    wire_put_u32(&request, persist);
    dcgmReturn_t status = session_call(opened, CALL_CONNECT, &request, NULL);
    if (status != DCGM_ST_OK)
        session_disconnect(opened);
    else
        *handle = opened;
    return status;
}

/* Asks over the socket. A connection that fails is gone for good. */
static dcgmReturn_t ask(struct session *session, enum call call, struct wire *request, struct wire *reply)
{
    int32_t status;
    pthread_mutex_lock(&session->turn);
    bool answered = wire_send(session->fd, (int32_t)call, request) && wire_receive(session->fd, &status, reply);
    pthread_mutex_unlock(&session->turn);
    if (answered)
        return (dcgmReturn_t)status;
    pthread_mutex_lock(&lock);
    bool first = !session->ended;
    end(session);
    pthread_mutex_unlock(&lock);
    if (first)
        release(session); /* the table's */
    return DCGM_ST_CONNECTION_NOT_VALID;
}

dcgmReturn_t session_call(dcgmHandle_t handle, enum call call, struct wire *request, struct wire *reply)
{
    struct wire unused = {0}, *answer = reply ? reply : &unused;
    struct session *session = acquire(handle);
    dcgmReturn_t status;
    if (!session)
        status = ready() ? DCGM_ST_CONNECTION_NOT_VALID : DCGM_ST_UNINITIALIZED;
    else if (session->engine)
        status = engine_call(session->engine, session->connection, call, request, answer);
    else
        status = ask(session, call, request, answer);
    if (session)
        release(session);
    wire_free(request);
    wire_free(&unused);
    return status;
}
