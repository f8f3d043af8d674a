#!/bin/sh
# First process of the node's own namespaces: `init.sh FOLDER HOSTNAME PAUSE`. What it mounts goes away with them.
set -eu
hostname "$2"
mount --make-rshared /
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /var/lib
test -d "$1" && test -x "$3" || { echo "the folders of the testbed cannot be below /run or /var/lib"; exit 1; }
mkdir -p /var/lib/kubelet /var/lib/cni
mount --bind "$1/kubelet" /var/lib/kubelet
mount --make-rshared /var/lib/kubelet
mount --bind "$1/log" /var/log
exec "$3"
