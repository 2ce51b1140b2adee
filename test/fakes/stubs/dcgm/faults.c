#include "faults.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hardware.h"
#include "status.h"

int fault(const char *function)
{
    char code[HARDWARE_TEXT];
    int status = 0;
    if (hardware_fault(HARDWARE_NODE, "dcgm.", function, code) && !status_parse(code, &status)) {
        fprintf(stderr, "hardware.conf: node.dcgm.return.%s = %s is no status of DCGM\n", function, code);
        abort();
    }
    return status;
}

static const char *key_of(const char *what, const char *function, char key[HARDWARE_TEXT])
{
    snprintf(key, HARDWARE_TEXT, "dcgm.%s.%s", what, function);
    return key;
}

long long claimed(const char *function, long long number)
{
    char key[HARDWARE_TEXT];
    int64_t scripted;
    return hardware_integer(HARDWARE_NODE, key_of("count", function, key), &scripted) ? scripted : number;
}

void unterminate(const char *function, char *text, unsigned long size)
{
    char key[HARDWARE_TEXT];
    if (hardware_flag(HARDWARE_NODE, key_of("unterminated", function, key)))
        memset(text, 'x', size);
}
