#!/usr/bin/env bash
# Try Foresail on a kind cluster of its own: a bucket, Velero, Foresail, a backup and a restore.
#   hack/try-on-kind.sh          every step: cluster bucket velero image install tour
#   hack/try-on-kind.sh tour     one step, or several
#   hack/try-on-kind.sh delete   delete the cluster
# Needs docker, kind, kubectl, velero 1.18 and Python 3.11. It touches the cluster kind-foresail and no other.
set -euo pipefail
cd "$(dirname "$0")/.."
IMAGE=foresail:try
PATH="$PWD/.venv/bin:$PATH"

# Every step uses a kubeconfig of this cluster alone: your own is neither used nor changed.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
use_cluster() {
  kind get kubeconfig --name foresail > "$folder/kubeconfig"
  export KUBECONFIG="$folder/kubeconfig"
}

run() { printf '\n$ %s\n' "$*"; "$@"; }

cluster() {
  run kind create cluster --name foresail --kubeconfig "$folder/created"
}

bucket() {
  run kubectl apply -f hack/bucket.yaml
  run kubectl rollout status deployment/bucket -n bucket --timeout=5m
}

velero_server() {
  run velero install --provider aws --plugins velero/velero-plugin-for-aws:v1.14.3 --bucket velero \
    --secret-file hack/bucket-credentials --use-volume-snapshots=false --wait \
    --backup-location-config region=minio,s3ForcePathStyle=true,s3Url=http://bucket.bucket:9000
}

image() {
  run docker build --tag "$IMAGE" --file Containerfile .
  run kind load docker-image "$IMAGE" --name foresail
}

install() {
  run make --silent setup
  run foresail install --self-service --image "$IMAGE"
}

tour() {
  run kubectl create namespace shop
  run kubectl label namespace shop foresail.dev/self-service=enabled
  run kubectl create configmap prices --from-literal=tea=3 -n shop
  run foresail backup create first -n shop --wait
  run kubectl delete configmap prices -n shop
  run foresail restore create undo --from-backup first -n shop --wait
  run kubectl get configmap prices -n shop -o 'jsonpath={.data.tea}'
  run foresail backup explain first -n shop
  run foresail schedule create nightly --schedule '0 3 * * *'
  run foresail schedule get
  printf '\nTo go on by yourself: kind export kubeconfig --name foresail\n'
}

delete() {
  run kind delete cluster --name foresail
}

for step in "${@:-all}"; do
  case $step in
    all) cluster; use_cluster; bucket; velero_server; image; install; tour ;;
    velero) use_cluster; velero_server ;;
    cluster | image | delete) "$step" ;;
    bucket | install | tour) use_cluster; "$step" ;;
    *) echo "unknown step: $step; one of cluster bucket velero image install tour delete" >&2; exit 2 ;;
  esac
done
