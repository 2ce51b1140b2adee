#!/usr/bin/env bash
# Makes folders that stand for gcr.io/distroless/static-debian12:nonroot and
# cc-debian12:nonroot, from the packages of this machine's Debian that these
# consist of. Nothing is installed.
#
#   distroless.sh FOLDER    writes FOLDER/static and FOLDER/cc
set -euo pipefail
cd "$1"

# A machine that has just been made knows no packages but those that it has.
(cd /tmp && apt-get download --print-uris base-files >/dev/null 2>&1) || apt-get update

static=(base-files netbase tzdata ca-certificates)
# Newer releases of Debian have libssl3 under another name.
ssl=$(apt-cache --names-only search '^libssl3(t64)?$' | cut -d' ' -f1 | head -n 1)
cc=(libc6 "${ssl:-libssl3}" libgcc-s1 libstdc++6 libgomp1)

rm -rf packages static cc
mkdir packages
(cd packages && { apt-get download "${static[@]}" "${cc[@]}" || # the list may be too old
	{ apt-get update && apt-get download "${static[@]}" "${cc[@]}"; }; })

# unpack ROOT PACKAGE…: apt has checked what it downloaded.
unpack() {
	local root=$1 package
	shift
	for package in "$@"; do
		dpkg-deb -x packages/"${package}"_*.deb "$root"
	done
}

# What the images have beside their packages.
people() {
	local root=$1
	printf '%s\n' 'root:x:0:0:root:/root:/sbin/nologin' 'nobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin' \
		'nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin' >"$root/etc/passwd"
	printf '%s\n' 'root:x:0:' 'nobody:x:65534:' 'tty:x:5:' 'staff:x:50:' 'nonroot:x:65532:' >"$root/etc/group"
	echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
	mkdir -p "$root/tmp" "$root/root" "$root/home/nonroot" "$root/etc/ssl/certs"
	chmod 1777 "$root/tmp"
	chmod 0700 "$root/root" "$root/home/nonroot"
	chown 65532:65532 "$root/home/nonroot"
	cat "$root"/usr/share/ca-certificates/mozilla/*.crt >"$root/etc/ssl/certs/ca-certificates.crt"
}

settings() {
	echo '{"User":"65532","WorkingDir":"/home/nonroot","Env":["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin","SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"]}'
}

mkdir -p static/rootfs
unpack static/rootfs "${static[@]}"
people static/rootfs
settings >static/config.json

cp --archive static cc
unpack cc/rootfs "${cc[@]}"
# libc6 and ca-certificates bring a few programs and scripts; the images have none.
for root in static/rootfs cc/rootfs; do
	rm -rf "$root"/usr/sbin "$root"/sbin/ldconfig "$root"/usr/bin "$root"/etc/update-motd.d
done
rm -r packages
