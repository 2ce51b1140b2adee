// A libnvidia-ml with two GPUs and few functions: what a test calls beside
// them ends the process, as it does with an old library.
#include <stdio.h>
#include <string.h>

typedef struct { int index; } gpu;
static gpu gpus[2] = {{0}, {1}};

// As in nvml.h.
typedef struct {
	char busIdLegacy[16];
	unsigned int domain, bus, device, pciDeviceId, pciSubSystemId;
	char busId[32];
} pciInfo;

typedef struct {
	unsigned int version;
	unsigned long long total, reserved, free, used;
} memory;

typedef struct {
	unsigned int fieldId, scopeId;
	long long timestamp, latencyUsec;
	int valueType, nvmlReturn;
	union { double d; unsigned long long ull; unsigned int ui; } value;
} fieldValue;

int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int r) { return r == 3 ? "Not Supported" : "Unknown Error"; }
int nvmlSystemGetDriverVersion(char *version, unsigned int length) { snprintf(version, length, "580.65.06"); return 0; }
int nvmlDeviceGetCount_v2(unsigned int *count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned int i, gpu **d) { *d = &gpus[i]; return 0; }
int nvmlDeviceGetUUID(gpu *d, char *uuid, unsigned int length) { snprintf(uuid, length, "GPU-%d", d->index); return 0; }
int nvmlDeviceGetName(gpu *d, char *name, unsigned int length) { snprintf(name, length, "Caf\xe9 %d", d->index); return 0; }
int nvmlDeviceGetMinorNumber(gpu *d, unsigned int *minor) { *minor = d->index; return 0; }

int nvmlDeviceGetPciInfo_v3(gpu *d, pciInfo *pci)
{
	memset(pci, 0, sizeof *pci);
	snprintf(pci->busId, sizeof pci->busId, "0000000%d:C1:00.0", d->index);
	return 0;
}

int nvmlDeviceGetPowerUsage(gpu *d, unsigned int *milliwatts)
{
	if (d->index == 1) return 999;
	*milliwatts = 123456;
	return 0;
}

int nvmlDeviceGetMemoryInfo_v2(gpu *d, memory *m)
{
	if (m->version != (sizeof *m | 2 << 24)) return 25;
	m->total = 80ull << 30, m->reserved = 1ull << 30, m->used = 2ull << 30, m->free = 77ull << 30;
	return 0;
}

int nvmlDeviceGetFieldValues(gpu *d, int count, fieldValue *values)
{
	for (int i = 0; i < count; i++) {
		fieldValue *v = &values[i];
		v->nvmlReturn = 0;
		if (v->fieldId == 82) v->valueType = 1, v->value.ui = 61;
		else if (v->fieldId == 138 && v->scopeId == 0xffffffff) v->valueType = 3, v->value.ull = 1ull << 33;
		else v->nvmlReturn = 3;
	}
	return 0;
}
