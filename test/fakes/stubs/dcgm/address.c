#include "address.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define DEFAULT_PORT "5555"
#define DEFAULT_TIMEOUT 5000 /* milliseconds, as in DCGM */

struct target {
    struct sockaddr_storage socket;
    socklen_t length;
};

static bool unix_target(const char *path, struct target *target)
{
    struct sockaddr_un *socket = (struct sockaddr_un *)&target->socket;
    if (strlen(path) >= sizeof socket->sun_path)
        return false;
    memset(target, 0, sizeof *target);
    socket->sun_family = AF_UNIX;
    strcpy(socket->sun_path, path);
    target->length = sizeof *socket;
    return true;
}

static bool tcp_target(const char *address, struct target *target)
{
    char host[256];
    const char *port = DEFAULT_PORT, *colon = strrchr(address, ':');
    snprintf(host, sizeof host, "%s", address);
    /* A bare IPv6 address has colons and no port. */
    if (colon && (address[0] == '[' ? colon[-1] == ']' : strchr(address, ':') == colon)) {
        port = colon + 1;
        host[colon - address] = '\0';
    }
    char *name = host;
    size_t length = strlen(name);
    if (length > 1 && name[0] == '[' && name[length - 1] == ']') {
        name[length - 1] = '\0';
        name++;
    }
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    if (getaddrinfo(name, port, &hints, &found))
        return false;
    memcpy(&target->socket, found->ai_addr, found->ai_addrlen);
    target->length = found->ai_addrlen;
    freeaddrinfo(found);
    return true;
}

static bool resolve(const char *address, bool path, struct target *target)
{
    if (path)
        return unix_target(address, target);
    if (!strncasecmp(address, "unix://", 7))
        return unix_target(address + 7, target);
    if (!strncasecmp(address, "tcp://", 6))
        return tcp_target(address + 6, target);
    return tcp_target(address, target);
}

static bool finish_connecting(int fd, unsigned timeout_ms)
{
    struct pollfd waiting = {.fd = fd, .events = POLLOUT};
    int error = 0;
    socklen_t length = sizeof error;
    return poll(&waiting, 1, (int)timeout_ms) == 1
           && !getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) && !error;
}

void address_hurry(int fd)
{
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* fails on a Unix socket, which needs none */
}

int address_connect(const char *address, bool path, unsigned timeout_ms)
{
    struct target target;
    if (!resolve(address, path, &target))
        return -1;
    int fd = socket(target.socket.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (connect(fd, (struct sockaddr *)&target.socket, target.length)
        && (errno != EINPROGRESS || !finish_connecting(fd, timeout_ms ? timeout_ms : DEFAULT_TIMEOUT))) {
        close(fd);
        return -1;
    }
    address_hurry(fd);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    return fd;
}

int address_listen(const char *address)
{
    struct target target;
    if (!resolve(address, false, &target))
        return -1;
    int fd = socket(target.socket.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (target.socket.ss_family == AF_UNIX)
        unlink(((struct sockaddr_un *)&target.socket)->sun_path);
    if (bind(fd, (struct sockaddr *)&target.socket, target.length) || listen(fd, 64)) {
        close(fd);
        return -1;
    }
    return fd;
}

unsigned address_port(int fd)
{
    struct sockaddr_storage name;
    socklen_t length = sizeof name;
    if (getsockname(fd, (struct sockaddr *)&name, &length))
        return 0;
    if (name.ss_family == AF_INET)
        return ntohs(((struct sockaddr_in *)&name)->sin_port);
    if (name.ss_family == AF_INET6)
        return ntohs(((struct sockaddr_in6 *)&name)->sin6_port);
    return 0;
}
