#!/bin/sh
# Runs a program where NVIDIA's DRA driver finds what its container and the
# kernel module would give it, and the machine does not have: the templates of
# its image, /proc/driver/nvidia and the module's line of /proc/devices. It is
# started in a mount namespace of its own, so that no other process sees any of it.
#
#   enter.sh ROOT TEMPLATES PROC-DRIVER PROC-DEVICES PROGRAM...
set -eu
root=$1 templates=$2 driver=$3 devices=$4
shift 4

mount -t tmpfs tmpfs "$root"
for entry in /*; do
	if [ -L "$entry" ]; then
		cp -a "$entry" "$root/"
	elif [ -d "$entry" ]; then
		mkdir "$root$entry"
		mount --rbind "$entry" "$root$entry"
	fi
done
mkdir -p "$root/templates"
mount --bind "$templates" "$root/templates"
mount --bind "$driver" "$root/proc/driver"
mount --bind "$devices" "$root/proc/devices"
exec chroot "$root" "$@"
