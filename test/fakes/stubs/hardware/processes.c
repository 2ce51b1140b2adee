#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store.h"

/* A value is "<kind> <pid> <memory> <utilization>". */
static struct hardware_process parse(const char *text)
{
    struct hardware_process process = {.memory = HARDWARE_UNKNOWN};
    char memory[HARDWARE_TEXT];
    if (sscanf(text, "%15s %u %127s %u", process.kind, &process.pid, memory, &process.utilization) != 4) {
        fprintf(stderr, "hardware.conf: %s is no process\n", text);
        abort();
    }
    if (strcmp(memory, "-"))
        process.memory = strtoull(memory, NULL, 0);
    return process;
}

struct hardware_process *hardware_processes(int gpu, unsigned *count)
{
    struct hardware_process *processes = NULL;
    struct value value;
    char key[HARDWARE_TEXT];
    *count = 0;
    store_enter();
    while (snprintf(key, sizeof key, "process.%u", *count), store_value(gpu, key, &value)) {
        if (*count % 64 == 0) {
            processes = realloc(processes, (*count + 64) * sizeof *processes);
            if (!processes)
                abort();
        }
        processes[(*count)++] = parse(value.text);
    }
    store_leave();
    return processes;
}
