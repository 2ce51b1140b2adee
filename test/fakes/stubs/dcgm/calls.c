#include "calls.h"

#include <stddef.h>

const char *call_name(enum call call)
{
    static const char *const names[CALL_COUNT] = {
#define CALL_NAME(number, name) [CALL_##number] = name,
        CALLS(CALL_NAME)
#undef CALL_NAME
    };
    return (unsigned)call < CALL_COUNT ? names[call] : NULL;
}
