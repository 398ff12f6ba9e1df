#!/usr/bin/env bash
# Prints the steps of `make test`, their time, and what they install. Arguments: the folder of installed tools, the folder of builds.
set -euo pipefail
cache=$1 target=$2

there() { if [ -e "$1" ]; then echo "there already"; else echo "$2"; fi; }
chromium=$(command -v "${CHROMIUM:-chromium}" || true)

cat <<TEXT
make test does two things, and stops at the first that fails:
  1. the build of all tests, and beside it the installations named below
  2. side by side, each line of output with the name of its half in front:
     rust      make test-rust       unit, property, conformance, crash and kill tests
               make test-schedules  locks and commits under thousands of thread schedules
     clients   make test-clients    PyMongo, the Node driver, mongosh and the Rust driver against a real server
Each takes some minutes on two idle cores with a warm build; a first build adds some more.
It writes to $target ($(du -sh "$target" 2>/dev/null | cut -f1 | grep . || echo "nothing there yet"), grows to some 10 GB) and installs:
  Python packages of tests/python/requirements.txt   into $cache/python: $(there "$cache/python/bin/python" "from PyPI")
  npm packages of tests/node/package.json            into $cache/node: $(there "$cache/node/.installed" "from the npm registry")
  Chromium, in which report pages are tested         $(if [ -n "$chromium" ]; then echo "there already: $chromium"; else echo "from Debian's packages, as root"; fi)
Interrupt with Ctrl-C; a second run goes on with what is built.
TEXT
