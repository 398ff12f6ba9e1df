#!/usr/bin/env bash
# A TiKV cluster for tests, on this machine alone: one placement driver and three storage nodes.
#
#   cluster.sh build            builds the programs into $PROGRAMS (needs Go)
#   cluster.sh start            starts the cluster in $FOLDER; done when each region has three replicas
#   cluster.sh split KEY…       begins regions at these keys (hexadecimal)
#   cluster.sh kill N | restart N | pause N | resume N      one storage node, 1 to 3
#   cluster.sh stop             ends the processes that `start` has begun
#
# PROGRAMS and FOLDER name folders. PD_PORT (32379) and STORE_PORT (32160) are the first ports.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
programs=${PROGRAMS:?the folder of the programs}
driver=127.0.0.1:${PD_PORT:-32379}
first=${STORE_PORT:-32160}

build() {
  command -v go >/dev/null || { echo "Go is needed for the test cluster: install Go 1.23 or newer" >&2; exit 1; }
  mkdir -p "$programs"
  mend
  # The node's packages reach into Go's runtime, which newer linkers refuse unless told.
  (cd "$here/store" && go build -mod=mod -modfile "$programs/store.mod" -ldflags=-checklinkname=0 -o "$programs/store" .)
  (cd "$here/placement" && go build -mod=mod -tags without_dashboard -ldflags="-s -w" -o "$programs/placement" github.com/tikv/pd/cmd/pd-server)
}

# Copies a module of the node to a folder where it can be changed, and prints the folder.
copy_module() {
  local copy="$programs/${1##*/}" from
  from=$(cd "$here/store" && go mod download -json "$1" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
  rm -rf "$copy"
  cp -r "$from" "$copy"
  chmod -R u+w "$copy"
  [ -e "$copy/go.mod" ] || echo "module $1" >"$copy/go.mod"
  echo "$copy"
}

# Changes a line of a file, and fails where there is no such line.
change() {
  grep -q "$2" "$1" || { echo "$1 has no line '$2' to mend: look whether its fault is gone" >&2; exit 1; }
  sed -i "$3" "$1"
}

# Mends two faults of the node's modules, by which snapshots lose entries:
# - Two versions of a key that come at once are written one after the other: see store/mended/earlier_versions.go.
# - From the second table of a compaction on, the first key with older versions loses them: its offset is 0, which stands for "none". A
#   new builder of tables begins with a byte before them for that reason, and one that is reset did not.
mend() {
  local unistore badger
  unistore=$(copy_module github.com/ngaut/unistore)
  cp "$here/store/mended/earlier_versions.go" "$unistore/tikv/raftstore/"
  change "$unistore/tikv/raftstore/engine.go" "^func (wb \*WriteBatch) WriteToKV(" \
    "/^func (wb \*WriteBatch) WriteToKV(/a if err := wb.writeEarlierVersions(bundle); err != nil { return err }"
  badger=$(copy_module github.com/pingcap/badger)
  change "$badger/table/sstable/builder.go" "b.oldBlock = b.oldBlock\[:0\]" "s/b.oldBlock = b.oldBlock\[:0\]/b.oldBlock = append(b.oldBlock[:0], 0)/"
  { cat "$here/store/go.mod"; echo "replace github.com/ngaut/unistore => $unistore"; echo "replace github.com/pingcap/badger => $badger"; } >"$programs/store.mod"
  cp "$here/store/go.sum" "$programs/store.sum"
}

node() {
  mkdir -p "$folder/node-$1"
  "$programs/store" -pd "$driver" -addr "127.0.0.1:$((first + $1))" -data "$folder/node-$1" -log "$folder/node-$1.log" >>"$folder/node-$1.out" 2>&1 &
  echo $! >"$folder/node-$1.pid"
}

# Whether every region has three replicas.
is_replicated() {
  curl -s "http://$driver/pd/api/v1/regions" | python3 -c '
import json, sys
regions = json.load(sys.stdin).get("regions") or []
sys.exit(not (len(regions) >= 5 and all(len(region["peers"]) == 3 for region in regions)))' 2>/dev/null
}

# On a busy machine a new node of this store often loses its first log entries, and ends. The cluster begins anew then: a node that is begun
# again alone does not get all of its replicas.
start() {
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    if begin; then return; fi
    stop
    rm -rf "${folder:?}"
  done
  echo "the cluster has not got three replicas of each region in ten attempts" >&2
  exit 1
}

begin() {
  mkdir -p "$folder"
  "$programs/placement" --name=pd1 --data-dir="$folder/placement" --client-urls="http://$driver" \
    --peer-urls="http://127.0.0.1:$((${driver##*:} + 1))" --config="$here/placement.toml" --log-file="$folder/placement.log" >"$folder/placement.out" 2>&1 &
  echo $! >"$folder/placement.pid"
  for _ in $(seq 300); do curl -sf "http://$driver/pd/api/v1/health" >/dev/null && break; sleep 0.1; done
  for number in 1 2 3; do node "$number"; done
  # The driver would split at the bounds of its default keyspace, and this store splits in halves only.
  for _ in $(seq 100); do
    curl -sf -X DELETE "http://$driver/pd/api/v1/config/region-label/rule/keyspaces%2F0" >/dev/null && break
    sleep 0.1
  done
  for _ in $(seq 240); do
    if is_replicated; then return; fi
    for number in 1 2 3; do kill -0 "$(cat "$folder/node-$number.pid")" 2>/dev/null || return 1; done
    sleep 0.25
  done
  return 1
}

stop() {
  for file in "$folder"/*.pid; do
    [ -e "$file" ] || continue
    kill -9 "$(cat "$file")" 2>/dev/null || true
    rm -f "$file"
  done
  sleep 0.5
}

command=${1:-help}
[ "$command" = build ] || folder=${FOLDER:?the folder of the data}
case $command in
  build) build ;;
  start) start ;;
  split) shift; "$programs/store" split "$driver" "$@" ;;
  kill) kill -9 "$(cat "$folder/node-$2.pid")" ;;
  pause) kill -STOP "$(cat "$folder/node-$2.pid")" ;;
  resume) kill -CONT "$(cat "$folder/node-$2.pid")" ;;
  restart) node "$2" ;;
  stop) stop ;;
  *) sed -n '2,12p' "$0"; exit 2 ;;
esac
