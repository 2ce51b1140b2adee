#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store.h"

/* Lines are "<Unix seconds> <gpu> <0|1>". One that is not complete yet is not
 * taken. */
void bindings_take(char *text)
{
    store.binding_count = 0;
    while (text && strchr(text, '\n')) {
        char *line = strsep(&text, "\n");
        struct hardware_binding binding;
        int bound;
        if (sscanf(line, "%lf %d %d", &binding.at, &binding.gpu, &bound) != 3)
            continue;
        binding.bound = bound;
        if (store.binding_count % 64 == 0) {
            store.bindings = realloc(store.bindings, (store.binding_count + 64) * sizeof binding);
            if (!store.bindings)
                abort();
        }
        store.bindings[store.binding_count++] = binding;
    }
}

size_t hardware_binding_count(void)
{
    store_enter();
    size_t count = store.binding_count;
    store_leave();
    return count;
}

bool hardware_binding(size_t number, struct hardware_binding *binding)
{
    store_enter();
    bool found = number < store.binding_count;
    if (found)
        *binding = store.bindings[number];
    store_leave();
    return found;
}
