#include "version.h"

#include <stdio.h>

#include "scripted.h"

static void version(char *text, size_t size)
{
    if (!scripted_node_line("dcgm.version", text, size))
        snprintf(text, size, "4.6.1");
}

void version_text(char *text, size_t size)
{
    char number[64];
    version(number, sizeof number);
    snprintf(text, size, "version:%s;arch:x86_64;buildtype:Release;buildid:1;builddate:2026-01-01", number);
}

unsigned version_number(void)
{
    char number[64];
    unsigned major = 0, minor = 0;
    version(number, sizeof number);
    if (sscanf(number, "%u.%u", &major, &minor) < 1)
        return 0;
    return major * 100 + minor;
}
