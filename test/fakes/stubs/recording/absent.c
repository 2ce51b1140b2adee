/* Functions that a recording does not have: to a program, the library is one of
 * an older driver. They look at no argument, so this file does without their
 * declarations. */
#define NVML_ERROR_FUNCTION_NOT_FOUND 13

#define ABSENT(function)                                       \
    __attribute__((visibility("default"))) int function(void); \
    int function(void) { return NVML_ERROR_FUNCTION_NOT_FOUND; }

ABSENT(nvmlSystemEventSetCreate)
ABSENT(nvmlSystemEventSetFree)
ABSENT(nvmlSystemEventSetWait)
ABSENT(nvmlSystemRegisterEvents)
