#include "faults.h"

#include <stdio.h>
#include <stdlib.h>

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
