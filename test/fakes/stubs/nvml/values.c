/* Values of the script as NVML gives them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "library.h"

static const char *key_of(struct device device, const char *key, char buffer[HARDWARE_TEXT])
{
    if (device.gi < 0)
        return key;
    snprintf(buffer, HARDWARE_TEXT, "mig.%d.%d.%s", device.gi, device.ci, key);
    return buffer;
}

nvmlReturn_t give_text(const char *text, char *buffer, unsigned length)
{
    if (strlen(text) + 1 > length)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(buffer, text);
    return NVML_SUCCESS;
}

nvmlReturn_t read_text(struct device device, const char *key, char *text, unsigned length)
{
    char buffer[HARDWARE_TEXT], value[HARDWARE_TEXT];
    if (!hardware_text(device.gpu, key_of(device, key, buffer), value))
        return NVML_ERROR_NOT_SUPPORTED;
    return give_text(value, text, length);
}

nvmlReturn_t read_number(struct device device, const char *key, double *value)
{
    char buffer[HARDWARE_TEXT];
    return hardware_number(device.gpu, key_of(device, key, buffer), value) ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t read_uint(struct device device, const char *key, double scale, unsigned *value)
{
    unsigned long long wide;
    nvmlReturn_t status = read_ull(device, key, scale, &wide);
    if (status == NVML_SUCCESS)
        *value = (unsigned)wide;
    return status;
}

/* Whole numbers stay exact where nothing is scaled. */
nvmlReturn_t read_ull(struct device device, const char *key, double scale, unsigned long long *value)
{
    char buffer[HARDWARE_TEXT];
    int64_t whole;
    double number;
    if (scale == 1) {
        if (!hardware_integer(device.gpu, key_of(device, key, buffer), &whole))
            return NVML_ERROR_NOT_SUPPORTED;
        *value = (unsigned long long)whole;
        return NVML_SUCCESS;
    }
    nvmlReturn_t status = read_number(device, key, &number);
    if (status == NVML_SUCCESS)
        *value = (unsigned long long)floor(number * scale + 1e-6);
    return status;
}
