#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store.h"

/* Lines are "<Unix seconds> <gpu> <code> <gi> <ci>", -1 for no instance. One
 * that is not complete yet is not taken. */
void xids_take(char *text)
{
    store.xid_count = 0;
    while (text && strchr(text, '\n')) {
        char *line = strsep(&text, "\n");
        struct hardware_xid xid;
        if (sscanf(line, "%lf %d %d %d %d", &xid.at, &xid.gpu, &xid.code, &xid.gi, &xid.ci) != 5)
            continue;
        if (store.xid_count % 64 == 0) {
            store.xids = realloc(store.xids, (store.xid_count + 64) * sizeof xid);
            if (!store.xids)
                abort();
        }
        store.xids[store.xid_count++] = xid;
    }
}

size_t hardware_xid_count(void)
{
    store_enter();
    size_t count = store.xid_count;
    store_leave();
    return count;
}

size_t hardware_xids(size_t from, struct hardware_xid *xids, size_t most)
{
    size_t copied = 0;
    store_enter();
    for (; from + copied < store.xid_count && copied < most; copied++)
        xids[copied] = store.xids[from + copied];
    store_leave();
    return copied;
}
