/* The device files that this process holds open, as fuser sees them. A program
 * that it starts does not inherit them. */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store.h"

#define CONTROL HARDWARE_MOST_GPUS /* index of nvidiactl */

static struct {
    pthread_mutex_t lock;
    bool open[HARDWARE_MOST_GPUS + 1];
    int files[HARDWARE_MOST_GPUS + 1];
} attachments = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A folder that cannot be written may still hold the files that NewNode made. */
static int open_device(const char *name)
{
    char path[sizeof store.folder + 64];
    store_enter();
    snprintf(path, sizeof path, "%s/dev", store.folder);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/dev/%s", store.folder, name);
    store_leave();
    int file = open(path, O_RDONLY | O_CREAT | O_CLOEXEC, 0666);
    return file >= 0 ? file : open(path, O_RDONLY | O_CLOEXEC);
}

void hardware_attach(int gpu)
{
    char name[64] = "nvidiactl";
    int64_t minor;
    int index = gpu == HARDWARE_NODE ? CONTROL : gpu;
    if (index != CONTROL) {
        if (!hardware_integer(gpu, "minor", &minor))
            return;
        snprintf(name, sizeof name, "nvidia%lld", (long long)minor);
    }
    pthread_mutex_lock(&attachments.lock);
    if (!attachments.open[index]) {
        attachments.files[index] = open_device(name);
        attachments.open[index] = attachments.files[index] >= 0;
    }
    pthread_mutex_unlock(&attachments.lock);
}

void hardware_detach(void)
{
    pthread_mutex_lock(&attachments.lock);
    for (int index = 0; index <= CONTROL; index++) {
        if (attachments.open[index])
            close(attachments.files[index]);
        attachments.open[index] = false;
    }
    pthread_mutex_unlock(&attachments.lock);
}

/* Compares the files of /proc/<pid>/fd, like fuser. */
static bool holds(int pid, const struct stat *device)
{
    char path[64];
    struct stat other;
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *files = opendir(path);
    for (struct dirent *file; files && !found && (file = readdir(files));)
        found = !fstatat(dirfd(files), file->d_name, &other, 0) && other.st_dev == device->st_dev && other.st_ino == device->st_ino;
    if (files)
        closedir(files);
    return found;
}

bool hardware_held_by_others(int gpu)
{
    char path[sizeof store.folder + 64];
    struct stat device;
    int64_t minor;
    bool found = false;
    if (!hardware_integer(gpu, "minor", &minor))
        return false;
    store_enter();
    snprintf(path, sizeof path, "%s/dev/nvidia%lld", store.folder, (long long)minor);
    store_leave();
    DIR *processes = stat(path, &device) ? NULL : opendir("/proc");
    for (struct dirent *process; processes && !found && (process = readdir(processes));) {
        int pid = atoi(process->d_name); /* 0: another file */
        found = pid > 0 && pid != getpid() && holds(pid, &device);
    }
    if (processes)
        closedir(processes);
    return found;
}
