#!/usr/bin/env bash
# The five comparisons in a small size: every workload against MongoDB with WiredTiger as B-tree, the same with its indexes as
# LSM, MariaDB with InnoDB and with MyRocks, and Pando, one after the other for each workload, so that ratios are of neighbours
# in time. All servers have a cache of 256 MB and run all the time; who is not asked is idle.
#
#   posts-small.sh OUT [WORKLOAD...]
#
# PANDO, PANDO_BENCH (built with --features mysql) name the programs, ORACLE the script that starts a MongoDB; SCRATCH is a
# folder for data. Durability: all answer before a sync. MongoDB syncs each 100 ms; MariaDB writes its log at each commit and
# syncs once a second.
set -euo pipefail
out=${1:?a folder for results}; shift
wanted=" ${*:-point sysbench kv iibench linkbench} "
bench=${PANDO_BENCH:-pando-bench} pando=${PANDO:-pando} oracle=${ORACLE:?the script that starts a MongoDB}
scratch=${SCRATCH:-$(mktemp -d)}
mkdir -p "$out" "$scratch"
read -r wt lsm maria ours < <(python3 - <<'PY'
import socket
sockets = [socket.socket() for _ in range(4)]
for one in sockets:
    one.bind(("127.0.0.1", 0))
print(*(one.getsockname()[1] for one in sockets))
PY
)
pids=()
finish() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; done
  "$oracle" stop "$wt" || true; "$oracle" stop "$lsm" || true
  rm -rf "$scratch"
}
trap finish EXIT

"$oracle" start "$wt" --wiredTigerCacheSizeGB 0.25 >/dev/null
"$oracle" start "$lsm" --wiredTigerCacheSizeGB 0.25 --wiredTigerIndexConfigString type=lsm >/dev/null
mariadb-install-db --no-defaults --datadir="$scratch/maria" --auth-root-authentication-method=normal --skip-test-db >/dev/null
mariadbd --no-defaults --user=root --bind-address=127.0.0.1 --port="$maria" --datadir="$scratch/maria" \
  --socket="$scratch/maria.sock" --pid-file="$scratch/maria.pid" --max-connections=500 \
  --plugin-load-add=ha_rocksdb --plugin-maturity=experimental --skip-name-resolve \
  --innodb-buffer-pool-size=256M --innodb-log-file-size=512M --innodb-flush-log-at-trx-commit=2 \
  --rocksdb-block-cache-size=256M --rocksdb-flush-log-at-trx-commit=2 >/dev/null 2>"$scratch/maria.log" &
pids+=($!)
"$pando" serve --data "$scratch/pando" --listen "127.0.0.1:$ours" --cache 256MB --unix-socket none >/dev/null 2>&1 &
pids+=($!)
for port in "$maria" "$ours"; do
  for _ in $(seq 300); do (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break; sleep 0.2; done
done

# A workload against all, each with its files in a folder of its own.
all() {
  local workload=$1; shift
  [[ $wanted == *" $workload "* ]] || return 0
  "$bench" "$workload" --uri "mongodb://127.0.0.1:$wt" --out "$out/wiredtiger" "$@" >>"$out/log" 2>&1 || echo "$workload: wiredtiger flagged"
  "$bench" "$workload" --uri "mongodb://127.0.0.1:$lsm" --out "$out/wiredtiger-lsm" "$@" >>"$out/log" 2>&1 || echo "$workload: lsm flagged"
  "$bench" "$workload" --uri "mongodb://127.0.0.1:$ours" --out "$out/pando" "$@" >>"$out/log" 2>&1 || echo "$workload: pando flagged"
  "$bench" "$workload" --uri "mysql://root@127.0.0.1:$maria" --mysql-engine innodb --database "${workload/point/sysbench}_i" --out "$out/innodb" "$@" >>"$out/log" 2>&1 || echo "$workload: innodb flagged"
  "$bench" "$workload" --uri "mysql://root@127.0.0.1:$maria" --mysql-engine rocksdb --database "${workload/point/sysbench}_r" --out "$out/myrocks" "$@" >>"$out/log" 2>&1 || echo "$workload: myrocks flagged"
  echo "$workload done at $(date -u +%T)"
}
seconds=${SECONDS_OF_RUN:-10} docs=${DOCS:-40000}
all point --docs "$docs" --clients 8 --warmup 2 --duration "$seconds" --load yes
# The same documents.
all sysbench --docs "$docs" --clients 8 --warmup 2 --duration "$seconds" --load missing
all kv --rows "${ROWS:-200000}" --reads 20000 --clients 100
all iibench --docs "${INSERTS:-200000}" --clients 4 --settle 20
all linkbench -l -r --nodes "${NODES:-10000}" --max-degree 500 --clients 16 --warmup 2 --duration "$seconds" --txn auto
