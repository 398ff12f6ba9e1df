# Everything that a person or a machine does with this project. `make` alone lists the targets.
#
# A target installs into .cache/ all that it needs beyond cargo, python3 and npm, from the package registries that the machine's
# own clients are set up for. Chromium, in which pages are tested, comes from Debian's packages where there is none.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.ONESHELL:
.SHELLFLAGS := -euo pipefail -c

CACHE      := $(CURDIR)/.cache
TARGET     := $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)
DATA       ?= $(CURDIR)/data
LISTEN     ?= 127.0.0.1:27017
PANDO      := $(TARGET)/release/pando
PANDO_DEV  := $(TARGET)/debug/pando
PYTHON     := $(CACHE)/python/bin/python
PYMONGO3   := $(CACHE)/pymongo3/bin/python
NODE_TESTS := $(CACHE)/node
SHARED     ?= $(CURDIR)/../shared
# A compiler is needed for zstd; Debian's package where the machine has none.
CC_CHECK   := command -v cc >/dev/null || { echo "a C compiler is needed: install gcc or clang"; exit 1; }

.PHONY: help
help: ## The list of targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## (.*)/  make \1\t\2/' | expand -t 24

# Always the same packages: another choice would have other features of what they share, and build it a second time.
BUILD_RELEASE := cargo build --release --package pando-server --package pando-bench

.PHONY: run
run: ## Build the server and run it on a local folder (DATA=…, LISTEN=…)
	@$(CC_CHECK)
	$(BUILD_RELEASE)
	exec $(PANDO) serve --data "$(DATA)" --listen "$(LISTEN)"

.PHONY: demo
demo: $(PYTHON) ## Five short steps: a server, real data, questions, a small measurement, what to do next
	@$(CC_CHECK)
	$(BUILD_RELEASE)
	PANDO="$(PANDO)" PANDO_BENCH="$(TARGET)/release/pando-bench" PYTHON="$(PYTHON)" CACHE="$(CACHE)" ORACLE="$(SHARED)/oracle/mongod" \
		bash tests/shell/demo.sh

# ---- tests

# Everything that `make test` tests, in one choice of packages: another choice would have other features of what they share, and build
# it again. Left out is only what needs a native library or a server of others.
TESTED      := --workspace $(addprefix --exclude ,pando-rocksdb pando-wiredtiger pando-wiredtiger-sys pando-tikv pando-bench-mysql)
# QUIETLY=--quiet leaves out the list of a hundred test programs.
BUILD_TESTS := cargo test --no-run $(QUIETLY) $(TESTED)

# Marks lines that come side by side; the closing lines of cargo, pytest and node stay as they are, for those who look for them.
marked = /^(test result:|=* ?[0-9]+ (passed|failed)|[^ -~]* ?\#? ?(tests|pass|fail) [0-9])/!s/^/$(1) | /

.PHONY: test
test: ## All tests, real clients included; says first what it does, takes and installs
	@$(CC_CHECK)
	bash tests/shell/test_plan.sh "$(CACHE)" "$(TARGET)"
	begun=$$SECONDS
	step() { printf '\n\033[1m[%s/2] %s\033[0m, after %d min %d s\n' "$$1" "$$2" "$$(((SECONDS - begun) / 60))" "$$(((SECONDS - begun) % 60))"; }
	again() { $(MAKE) --no-print-directory "$$@" BUILD_DEV='$$(BUILD_TESTS)'; }
	step 1 "the build of all tests, and beside it what the clients and the pages need"
	# Most of an installation waits for the network. Its output comes at its end, lest it mix with the build's.
	( installed=$$(again installations 2>&1) || { echo "$$installed"; exit 1; } ) &
	installations=$$!
	again test-build || { wait $$installations; exit 1; }
	wait $$installations
	step 2 "make test-rust test-schedules, and beside them make test-clients, which mostly waits"
	export QUIETLY=--quiet
	# In shells of their own: of a pipeline that has ended before it is waited for, bash has kept the end of its last program alone.
	( { again test-rust && again test-schedules; } 2>&1 | sed -u -E "$(call marked,rust   )" ) &
	rust=$$!
	( again test-clients 2>&1 | sed -u -E "$(call marked,clients)" ) &
	clients=$$!
	failed=""
	wait $$rust || failed="$$failed test-rust or test-schedules"
	wait $$clients || failed="$$failed test-clients"
	[ -z "$$failed" ] || { echo "failed:$$failed; its lines above say where"; exit 1; }
	step 2 "all tests have passed"

.PHONY: installations
installations: browser $(PYTHON) $(PYMONGO3) $(NODE_TESTS)/.installed

.PHONY: test-build
test-build:
	@$(CC_CHECK)
	$(BUILD_TESTS)

.PHONY: lint
lint: ## Format, lints, layers, tidy, licences and sources of packages
	@$(CC_CHECK)
	cargo fmt --all --check
	cargo clippy --all-targets -- -D warnings
	# The library with its default features, which differ from the server's.
	cargo clippy --package pandodb -- -D warnings
	cargo xtask layers
	cargo xtask tidy
	cargo xtask dependencies

# Building cargo-deny takes as long as building the server, and its advisories come from GitHub. So it is no part of `make lint`.
DENY_VERSION := 0.20.2
DENY := $(CACHE)/cargo-deny-$(DENY_VERSION)/bin/cargo-deny
.PHONY: deny
deny: ## The policy of deny.toml by cargo-deny, with known flaws of packages where their database can be had
	@test -x "$(DENY)" || cargo install --quiet --locked --root "$(CACHE)/cargo-deny-$(DENY_VERSION)" cargo-deny@$(DENY_VERSION)
	"$(DENY)" check licenses sources
	# Second versions count in the server, and not in tests, tools and the engines that are no part of it by default.
	"$(DENY)" --manifest-path ./crates/server/Cargo.toml --exclude-dev --config deny.toml check bans
	if "$(DENY)" fetch db; then
		"$(DENY)" check advisories
	else
		echo "the database of advisories cannot be had here: licences, bans and sources were checked, known flaws were not"
	fi

# Report pages are tested in a browser: Debian's package where the machine has none.
.PHONY: browser
browser:
	@command -v "$${CHROMIUM:-chromium}" >/dev/null && exit
	echo "installing chromium, in which report pages are tested"
	as_root=""; [ "$$(id -u)" = 0 ] || as_root="sudo"
	{ $$as_root apt-get update -qq; $$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -yqq --no-install-recommends chromium; } >/dev/null 2>&1 \
		|| { echo "chromium could not be installed: install it, or name one by CHROMIUM"; exit 1; }

.PHONY: test-rust
test-rust: browser test-build ## Unit, property, conformance, crash and kill tests
	cargo test --quiet $(TESTED)

.PHONY: test-schedules
test-schedules: ## Locks, commits, freezes, log and cache under thousands of schedules (SCHEDULES=…, SCHEDULE_SEED=…, TEST=…)
	@$(CC_CHECK)
	CARGO_TARGET_DIR="$(TARGET)/schedules" RUSTFLAGS="--cfg shuttle" cargo test --quiet --lib \
		--package pando-environment --package pando-storage --package pando-betree -- $(or $(TEST),schedules)

# The nightly toolchain has the sanitizers. Its standard library is built without them: what ThreadSanitizer cannot see of it stands in
# tools/sanitizers/tsan.supp, or is replaced by `--cfg thread_sanitizer`.
SANITIZED  := cargo +nightly test --quiet --no-fail-fast --target x86_64-unknown-linux-gnu
.PHONY: sanitize
sanitize: ## AddressSanitizer on the code with unsafe blocks, ThreadSanitizer on the engine's threads (needs the nightly toolchain)
	@$(CC_CHECK)
	@cargo +nightly --version >/dev/null || { echo "there is no nightly toolchain: rustup toolchain install nightly"; exit 1; }
	export CARGO_TARGET_DIR="$(TARGET)/address" RUSTFLAGS="-Zsanitizer=address"
	$(SANITIZED) --tests --package pando-environment --package pando-document --package pando-lmdb
	$(SANITIZED) --package pando-betree --lib
	$(SANITIZED) --package pando-betree --test outside -- large_values:: live:: missed_reads:: reads:: threads::
	export CARGO_TARGET_DIR="$(TARGET)/thread" RUSTFLAGS="-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer --cfg thread_sanitizer"
	export TSAN_OPTIONS="suppressions=$(CURDIR)/tools/sanitizers/tsan.supp"
	$(SANITIZED) --tests --package pando-environment
	$(SANITIZED) --package pando-betree --lib
	$(SANITIZED) --package pando-betree --test outside -- live:: missed_reads:: reads:: threads::

# ---- engines that need a native library: each adds its name, and the target that installs its library

NATIVE_ENGINES   := lmdb
ENGINE_LIBRARIES :=

NATIVE_ENGINES   += rocksdb
ENGINE_LIBRARIES += library-rocksdb
# RocksDB is built from source, a quarter of an hour, unless an installed one is to be linked: ROCKSDB_LIB_DIR=…
ifdef ROCKSDB_LIB_DIR
export ROCKSDB_LIB_DIR
# A folder of the system is searched anyway, and would come before the libraries of another Python.
ifeq ($(filter /usr/lib%,$(ROCKSDB_LIB_DIR)),)
export LD_LIBRARY_PATH := $(ROCKSDB_LIB_DIR)$(if $(LD_LIBRARY_PATH),:$(LD_LIBRARY_PATH))
endif
endif
.PHONY: library-rocksdb
library-rocksdb:
	@for library in /usr/lib/llvm-*/lib/libclang*.so* /usr/lib/*/libclang*.so* "$${LIBCLANG_PATH:-/nowhere}"/libclang*.so*; do [ -e "$$library" ] && exit; done
	echo "installing libclang, which reads RocksDB's headers"
	as_root=""; [ "$$(id -u)" = 0 ] || as_root="sudo"
	{ $$as_root apt-get update -qq; $$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -yqq --no-install-recommends libclang-dev; } >/dev/null 2>&1 \
		|| { echo "libclang could not be installed: install it, or name its folder by LIBCLANG_PATH"; exit 1; }

# WiredTiger is under the GNU General Public License: engines/wiredtiger/README.md.
NATIVE_ENGINES   += wiredtiger
ENGINE_LIBRARIES += engine-wiredtiger-library
.PHONY: engine-wiredtiger-library
engine-wiredtiger-library:
	@test -e "$${WIREDTIGER_INCLUDE_DIR:-/usr/include}/wiredtiger.h" && ldconfig -p | grep -q libclang && exit
	command -v apt-get >/dev/null || { echo "install WiredTiger 3.2 and libclang: engines/wiredtiger/README.md"; exit 1; }
	echo "installing WiredTiger 3.2, and libclang, which reads its header"
	as_root=""; [ "$$(id -u)" = 0 ] || as_root="sudo"
	{ $$as_root apt-get update -qq; $$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -yqq --no-install-recommends libwiredtiger-dev libclang-dev; } >/dev/null 2>&1 \
		|| { echo "libwiredtiger-dev or libclang-dev could not be installed"; exit 1; }

.PHONY: engines
engines: $(ENGINE_LIBRARIES) ## A server and a lab with all engines, in release (ROCKSDB_LIB_DIR=… links an installed RocksDB)
	@$(CC_CHECK)
	cargo build --release --package pando-server --package pando-bench \
		--features "$(foreach engine,$(NATIVE_ENGINES),pando-server/engine-$(engine) pando-bench/engine-$(engine))"

# betree with its default layout is compared with MongoDB by `make acceptance`.
ENGINE_LIST  = $(or $(ENGINES),$(shell echo $(NATIVE_ENGINES) | tr ' ' ','))
.PHONY: test-engines
test-engines: $(PYTHON) $(ENGINE_LIBRARIES) ## Each engine with a native library: the conformance suite, PyMongo's tests, random requests beside MongoDB in all layouts (ENGINES=lmdb,rocksdb)
	@$(CC_CHECK)
	engines="$(ENGINE_LIST)"
	for engine in $${engines//,/ }; do cargo test --quiet --package pando-$$engine; done
	cargo build --package pando-server --features "$(addprefix pando-server/engine-,$(NATIVE_ENGINES))"
	ENGINES="$$engines" PANDO="$(PANDO_DEV)" $(PYTHON) -m pytest -q $(SIDE_BY_SIDE) tests/python
	if [ -x "$(SHARED)/oracle/mongod" ]; then
		stores="betree:heap"; for engine in $${engines//,/ }; do stores="$$stores,$$engine:clustered,$$engine:heap"; done
		ACCEPTANCE_STORES="$$stores" PANDO="$(PANDO_DEV)" SHARED="$(SHARED)" $(PYTHON) -m pytest -q $(SIDE_BY_SIDE) \
			tests/acceptance/test_random_queries.py tests/acceptance/test_engines_alike.py
	else
		echo "not compared with a real MongoDB: there is no $(SHARED)/oracle/mongod"
	fi

# A real placement driver and storage nodes that speak TiKV's protocol, both from the Go module proxy.
TIKV_CLUSTER := PROGRAMS="$(CACHE)/tikv" FOLDER="$(TARGET)/tikv-cluster" bash tests/tikv/cluster.sh
define BEGIN_TIKV_CLUSTER
$(TIKV_CLUSTER) build
$(TIKV_CLUSTER) stop
rm -rf "$(TARGET)/tikv-cluster"
trap '$(TIKV_CLUSTER) stop' EXIT
$(TIKV_CLUSTER) start
export PANDO_TIKV_PD=127.0.0.1:32379
endef

.PHONY: test-tikv
test-tikv: $(PYTHON) ## The conformance suite and PyMongo's tests over a TiKV cluster of three nodes, with failures (needs Go)
	@$(CC_CHECK)
	$(BEGIN_TIKV_CLUSTER)
	cargo test --quiet --package pando-tikv -- --test-threads 4
	cargo build --package pando-server --features pando-server/engine-tikv
	PROGRAMS="$(CACHE)/tikv" FOLDER="$(TARGET)/tikv-cluster" ENGINES=tikv PANDO="$(PANDO_DEV)" $(PYTHON) -m pytest -q tests/python/test_engines.py tests/python/test_blind_updates.py tests/tikv

# A node of the tests maps more files with each tree, up to the kernel's limit of maps: each part has a cluster of its own.
.PHONY: test-tikv-clients
test-tikv-clients: $(PYTHON) $(NODE_TESTS)/.installed ## PyMongo's and Node's whole files over a TiKV cluster, with one server of a store and with two; two hours (ENGINES=tikv; needs Go)
	@$(CC_CHECK)
	cargo build --package pando-server --features pando-server/engine-tikv
	failed=""
	for engine in $(or $(ENGINES),tikv tikv-pair); do
		for part in '[a-b]' '[c-d]' '[e-h]' '[i-l]' '[m-p]' '[q-s]' '[t-z]'; do
			$(BEGIN_TIKV_CLUSTER)
			ENGINES=$$engine PANDO="$(PANDO_DEV)" $(PYTHON) -m pytest -q -n 2 --dist loadfile tests/python/test_$$part*.py -k tikv || failed="$$failed $$engine:$$part"
		done
		(cd $(NODE_TESTS) && ENGINE=$$engine PANDO="$(PANDO_DEV)" PACKAGING="$(CURDIR)/packaging" node --test) || failed="$$failed $$engine:node"
	done
	[ -z "$$failed" ] || { echo "failed:$$failed; the lines above say where"; exit 1; }

.PHONY: test-tikv-conformance
test-tikv-conformance: ## The tests of the engine tikv, the conformance suite among them, over a cluster of three nodes (needs Go)
	@$(CC_CHECK)
	$(BEGIN_TIKV_CLUSTER)
	cargo test --quiet --package pando-tikv -- --test-threads 4

.PHONY: measure-tikv
measure-tikv: $(PYTHON) ## The rows of docs/measurements.md about TiKV: a server beside the bare client, two servers beside one, ten minutes (needs Go; PARTS="processor load")
	@$(CC_CHECK)
	cargo build --release --package pando-server --features pando-server/engine-tikv
	# With the server's features, so that both have the same client.
	cargo build --release --package pando-server --package pando-tikv --features pando-server/engine-tikv --example bare_client
	$(BEGIN_TIKV_CLUSTER)
	PROGRAMS="$(CACHE)/tikv" FOLDER="$(TARGET)/tikv-cluster" PANDO="$(PANDO)" \
		BARE_CLIENT="$(TARGET)/release/examples/bare_client" $(PYTHON) tests/tikv/measure.py $(PARTS)

.PHONY: test-mysql
test-mysql: ## The benchmark lab against a real MariaDB with InnoDB and MyRocks, which the tests start
	@for program in mariadbd mariadb-install-db; do command -v $$program >/dev/null || { echo "there is no $$program: install mariadb-server and mariadb-plugin-rocksdb"; exit 1; }; done
	cargo test --quiet --package pando-bench-mysql

# The files of tests run side by side, each worker with a server of its own: most tests wait.
SIDE_BY_SIDE := -n 4 --dist loadfile
# In the order of tests/python/conftest.py, which puts slow files first; without it those of few tests come last.
SLOW_FIRST := --no-loadscope-reorder

# `make test` has built the programs with the tests, whose features differ from those of the programs alone.
BUILD_DEV ?= cargo build --package pando-server --package pando-bench
.PHONY: test-clients
test-clients: $(PYTHON) $(PYMONGO3) $(NODE_TESTS)/.installed ## PyMongo old and new, the Node driver, mongosh and the Rust driver against a real server; 50 histories
	$(BUILD_DEV)
	PANDO="$(PANDO_DEV)" $(PYTHON) -m pytest -q $(SIDE_BY_SIDE) $(SLOW_FIRST) tests/python
	PANDO="$(PANDO_DEV)" PYMONGO3="$(PYMONGO3)" $(PYTHON) -m pytest -q tests/legacy -k pymongo_3
	PANDO="$(PANDO_DEV)" $(PYTHON) -m pytest -q $(SIDE_BY_SIDE) tests/histories
	PANDO="$(PANDO_DEV)" $(PYTHON) tests/histories/histories.py --runs 50 --seconds 0.5 --kill sometimes --break sometimes --build sometimes --out "$(TARGET)/histories"
	cd $(NODE_TESTS) && PANDO="$(PANDO_DEV)" PACKAGING="$(CURDIR)/packaging" node --test
	cd $(CURDIR)
	PANDO="$(PANDO_DEV)" CARGO_TARGET_DIR="$(TARGET)/rust-driver" cargo test --quiet --manifest-path tests/rust/Cargo.toml

# Java and Go have toolchains of their own; their drivers come from Maven Central and the Go module proxy.
JAVA_DRIVER_VERSION := 5.3.1
JAVA_DRIVER := mongodb-driver-sync mongodb-driver-core bson bson-record-codec
.PHONY: test-java-go
test-java-go: $(PYTHON) java-go-clients ## Sessions, transactions, bulk writes and logins of today's Java and Go drivers (needs a JDK, Maven and Go)
	$(BUILD_DEV)
	PANDO="$(PANDO_DEV)" GO_CLIENT="$(CACHE)/clients/go" JAVA_CLIENT="$(CACHE)/clients/java" $(PYTHON) -m pytest -q tests/clients

.PHONY: java-go-clients
java-go-clients:
	@for program in java javac mvn go; do command -v $$program >/dev/null || { echo "there is no $$program: install a JDK, Maven and Go"; exit 1; }; done
	mkdir -p "$(CACHE)/clients/java"
	find "$(CACHE)/clients/java" -name '*.jar' ! -name '*-$(JAVA_DRIVER_VERSION).jar' -delete
	for artifact in $(JAVA_DRIVER); do
		test -e "$(CACHE)/clients/java/$$artifact-$(JAVA_DRIVER_VERSION).jar" || \
			mvn -q -B dependency:copy -Dartifact=org.mongodb:$$artifact:$(JAVA_DRIVER_VERSION) -DoutputDirectory=$(CACHE)/clients/java
	done
	javac -nowarn -Xlint:none -d $(CACHE)/clients/java -cp "$(CACHE)/clients/java/*" tests/clients/java/Program.java
	cd tests/clients/go && go build -o $(CACHE)/clients/go . && cd $(CURDIR)

LEGACY_JAVA := 2.11.4 2.14.3 3.12.14
.PHONY: test-legacy-clients
test-legacy-clients: $(PYTHON) $(PYMONGO3) ## Programs of ten years ago: PyMongo 3.13, Java 2.11, 2.14 and 3.12, mgo.v2 for Go (needs a JDK, Maven and Go)
	@for program in java javac mvn go; do command -v $$program >/dev/null || { echo "there is no $$program: install a JDK, Maven and Go"; exit 1; }; done
	cargo build --package pando-server
	for version in $(LEGACY_JAVA); do
		jar="$(CACHE)/legacy/mongo-java-driver-$$version.jar"
		test -e "$$jar" || mvn -q -B dependency:copy -Dartifact=org.mongodb:mongo-java-driver:$$version -DoutputDirectory=$(CACHE)/legacy
		mkdir -p $(CACHE)/legacy/$$version
		javac -nowarn -Xlint:none -d $(CACHE)/legacy/$$version -cp "$$jar" tests/legacy/Program.java
	done
	cd tests/legacy/mgo && go build -o $(CACHE)/legacy/mgo . && cd $(CURDIR)
	PANDO="$(PANDO_DEV)" PYMONGO3="$(PYMONGO3)" JAVA_CLASSES="$(CACHE)/legacy" MGO="$(CACHE)/legacy/mgo" $(PYTHON) -m pytest -q tests/legacy

.PHONY: test-driver-suites
test-driver-suites: $(PYTHON) ## The own suites of PyMongo, the Go driver and Python programs, whose failures all have a known reason; 40 minutes (TESTS="test/test_cursor.py …" RUN=TestUnifiedSpec/crud; needs Go)
	cargo build --package pando-server
	[ -n "$(RUN)" ] || PANDO="$(PANDO_DEV)" $(PYTHON) tests/suites/pymongo_suite.py --folder "$(CACHE)/suites" $(TESTS)
	[ -n "$(TESTS)" ] || PANDO="$(PANDO_DEV)" $(PYTHON) tests/suites/go_suite.py --folder "$(CACHE)/suites" $(if $(RUN),--run "$(RUN)")
	[ -n "$(TESTS)$(RUN)" ] || PANDO="$(PANDO_DEV)" $(PYTHON) tests/suites/python_programs.py --folder "$(CACHE)/suites"

.PHONY: test-histories
test-histories: $(PYTHON) ## Histories of concurrent transactions, checked for isolation, with kill -9 (RUNS=1000 WORKLOAD=… SEED=… ARGUMENTS=…)
	cargo build --package pando-server
	PANDO="$(PANDO_DEV)" $(PYTHON) tests/histories/histories.py --runs $(or $(RUNS),1000) --workload $(or $(WORKLOAD),all) $(if $(SEED),--seed $(SEED)) \
		--kill sometimes --break sometimes --build sometimes --out "$(TARGET)/histories" $(ARGUMENTS)

.PHONY: acceptance
acceptance: $(PYTHON) ## The same questions to Pando and to a real MongoDB (needs SHARED=folder with oracle/ and data/)
	@test -x "$(SHARED)/oracle/mongod" || { echo "there is no $(SHARED)/oracle/mongod: set SHARED"; exit 1; }
	$(BUILD_DEV)
	cargo build --package pando-keyorder --examples
	PANDO="$(PANDO_DEV)" PANDO_BENCH="$(TARGET)/debug/pando-bench" SHARED="$(SHARED)" TARGET="$(TARGET)" $(PYTHON) -m pytest -q $(SIDE_BY_SIDE) tests/acceptance
	PANDO="$(PANDO_DEV)" $(PYTHON) -m pytest -q tests/memory

.PHONY: acceptance-queries
acceptance-queries: $(PYTHON) ## Random finds, counts, updates and upserts to Pando and to a real MongoDB: 200,000 of them, some hours (ROUNDS=44 SEED=1; 4,600 a round)
	@test -x "$(SHARED)/oracle/mongod" || { echo "there is no $(SHARED)/oracle/mongod: set SHARED"; exit 1; }
	$(BUILD_DEV)
	PANDO="$(PANDO_DEV)" SHARED="$(SHARED)" PANDO_ACCEPTANCE_ROUNDS="$(or $(ROUNDS),44)" PANDO_ACCEPTANCE_SEED="$(or $(SEED),1)" \
		$(PYTHON) -m pytest -q -n 2 --dist load tests/acceptance/test_random_queries.py -k "random_finds or random_counts or random_updates or random_upserts"

.PHONY: acceptance-pipelines
acceptance-pipelines: $(PYTHON) ## Random pipelines to Pando and to a real MongoDB: 300,000 of them, some hours (ROUNDS=200 SEED=1; 1,500 pipelines a round)
	@test -x "$(SHARED)/oracle/mongod" || { echo "there is no $(SHARED)/oracle/mongod: set SHARED"; exit 1; }
	$(BUILD_DEV)
	PANDO="$(PANDO_DEV)" SHARED="$(SHARED)" PANDO_ACCEPTANCE_ROUNDS="$(or $(ROUNDS),200)" PANDO_ACCEPTANCE_SEED="$(or $(SEED),1)" \
		$(PYTHON) -m pytest -q -n 2 --dist load tests/acceptance/test_random_queries.py -k "random_pipelines or random_expressions"

.PHONY: test-memory
test-memory: $(PYTHON) ## Sorts, groups and distincts of 5 million documents, 64 at once, in a control group of cache + 256 MB; half an hour (DOCUMENTS=…)
	cargo build --release --package pando-server
	PANDO="$(PANDO)" MEMORY_DOCUMENTS="$(or $(DOCUMENTS),5000000)" $(PYTHON) -m pytest -q -s tests/memory

.PHONY: measure
measure: $(PYTHON) ## The server's rows of docs/measurements.md, on this machine (half an hour of an idle machine; MEASURES="point load", ROUNDS=…)
	cargo build --release --package pando-server --package pando-bench
	PANDO="$(PANDO)" PANDO_BENCH="$(TARGET)/release/pando-bench" ORACLE="$(SHARED)/oracle/mongod" $(PYTHON) tests/measurements/measure.py $(or $(MEASURES),all)

.PHONY: measure-pages
measure-pages: ## docs/measurements.md, the claims and the chart of README.md anew from the raw results of docs/measurements
	python3 tests/measurements/page.py

.PHONY: compare
compare: $(PYTHON) ## Two builds of the server and of betree in turn (BEFORE=folder AFTER=folder; ROWS=load,point,iibench,engine ROUNDS=… PHASES=… OUT=…)
	@test -n "$(BEFORE)" -a -n "$(AFTER)" || { echo "name the folders of both builds: make compare BEFORE=… AFTER=…"; exit 1; }
	$(PYTHON) tests/measurements/compare.py --before "$(BEFORE)" --after "$(AFTER)" $(if $(ROWS),--rows "$(ROWS)") $(if $(ROUNDS),--rounds "$(ROUNDS)") \
		$(if $(PHASES),--phases "$(PHASES)") $(if $(OUT),--out "$(OUT)") $(ARGUMENTS)

.PHONY: measure-posts
measure-posts: ## The five posts against five engines in a small size, half an hour of an idle machine, to 75 minutes of a busy one (MONGOD=PATH, OUT=…); goes on where it was interrupted
	@for program in mariadbd mariadb-install-db; do command -v $$program >/dev/null || { echo "there is no $$program: install mariadb-server and mariadb-plugin-rocksdb"; exit 1; }; done
	mongod="$(MONGOD)"
	if [ -z "$$mongod" ] && [ -x "$(SHARED)/oracle/mongod" ]; then mongod=$$("$(SHARED)/oracle/mongod" install); fi
	if [ -z "$$mongod" ]; then mongod=$$(command -v mongod || true); fi
	test -x "$$mongod" || { echo "there is no mongod$${mongod:+ at $$mongod}: install MongoDB 6.0, for which the suite is made, and name its mongod by MONGOD=PATH"; exit 1; }
	cargo build --release --package pando-server --package pando-bench-mysql
	LD_LIBRARY_PATH="$$(dirname "$$mongod")/lib" $(TARGET)/release/pando-bench-mysql suite tools/bench/suites/posts-small.toml --out "$(or $(OUT),$(CACHE)/posts)" \
		--program pando="$(PANDO)" --program mongod="$$mongod" $(ARGUMENTS)

.PHONY: measure-lab
measure-lab: $(NODE_TESTS)/.installed ## What the benchmark lab itself costs, and its client beside the Node and the Rust driver
	cargo build --release --package pando-server --package pando-bench
	cargo build --release --target-dir "$(TARGET)/rust-driver" --manifest-path tests/rust/Cargo.toml --example points
	failed=0; mkdir -p $(CACHE)
	$(TARGET)/release/pando-bench self-check | tee $(CACHE)/lab.txt || failed=1
	python3 tests/measurements/drivers.py --programs $(TARGET)/release --node $(NODE_TESTS) --rust $(TARGET)/rust-driver/release/examples/points \
		| tee -a $(CACHE)/lab.txt || failed=1
	python3 tests/measurements/lab.py $(CACHE)/lab.txt
	exit $$failed

.PHONY: linkbench-table
linkbench-table: ## Whether your copy of LinkBench's config/Distribution.dat is its own table of degrees, by its totals (FILE=…)
	@test -n "$(FILE)" || { echo "name your copy of LinkBench's config/Distribution.dat: make linkbench-table FILE=…"; exit 1; }
	cargo run --release --quiet --package pando-bench -- self-check degrees --data-file "$(FILE)"

# The results of a run with ARGUMENTS of its own are no rows of docs/measurements.md.
.PHONY: measure-engines
measure-engines: ## betree beside RocksDB, LMDB, redb and fjall, in process, some 20 minutes (PEERS=all-peers, RUNS=1, OUT=…, ARGUMENTS=…)
	@$(CC_CHECK)
	# RocksDB is built from source (long, and needs libclang) unless an installed one is to be linked: ROCKSDB_LIB_DIR=…
	cargo build --release --package pando-bench-engine --features "$(or $(PEERS),all-peers)"
	folders=""; failed=0
	for run in $$(seq $(or $(RUNS),1)); do
		folder="$(or $(OUT),$(CACHE)/engines)/run-$$run"; folders="$$folders $$folder"
		$(TARGET)/release/pando-bench-engine all --out "$$folder" $(or $(ARGUMENTS),$(ENGINES_SETUP)) || failed=1
	done
	$(if $(ARGUMENTS),,python3 tests/measurements/engines.py $$folders)
	exit $$failed

ENGINES_SETUP := --cache 64MB --headroom 192MB --scale 10 --seconds 1.5 --limit 45
# So few documents that every load ends within its time: both stores of a library have the same.
CONTRACT_SETUP := --cache 64MB --headroom 192MB --scale 2 --seconds 3 --limit 180

.PHONY: measure-contract
measure-contract: $(ENGINE_LIBRARIES) ## Rates of RocksDB, LMDB and WiredTiger behind the contract by those of the bare library, five minutes (OUT=…, ARGUMENTS=…)
	@$(CC_CHECK)
	cargo build --release --package pando-bench-engine --features contract
	$(TARGET)/release/pando-bench-engine all --out "$(or $(OUT),$(CACHE)/contract)" --phases cached \
		--peers rocksdb,rocksdb-engine,lmdb,lmdb-engine,wiredtiger,wiredtiger-engine $(or $(ARGUMENTS),$(CONTRACT_SETUP))
	$(if $(ARGUMENTS),,python3 tests/measurements/contract.py "$(or $(OUT),$(CACHE)/contract)")

MATRIX := sysbench iibench points
.PHONY: measure-matrix
measure-matrix: engines ## The engines under sysbench-mongodb, iibench and point queries, an hour and a half; goes on where it was interrupted (MATRIX="points", OUT=…, ARGUMENTS=…)
	failed=0
	for suite in $(MATRIX); do
		$(TARGET)/release/pando-bench suite tools/bench/suites/engines-$$suite-small.toml --out "$(or $(OUT),$(CACHE)/matrix)/$$suite" \
			--program pando="$(PANDO)" $(ARGUMENTS) || failed=1
		$(if $(ARGUMENTS),,python3 tests/measurements/matrix.py "$(or $(OUT),$(CACHE)/matrix)/$$suite")
	done
	exit $$failed

.PHONY: measure-inserts
measure-inserts: ## The right panel of the README's chart: inserts into betree and RocksDB, in process, three minutes
	@$(CC_CHECK)
	cargo build --release --package pando-bench-engine --features rocksdb
	$(TARGET)/release/pando-bench-engine all --out "$(or $(OUT),$(CACHE)/inserts)" --peers betree,rocksdb --phases capped $(ENGINES_SETUP)
	python3 tests/measurements/engines.py --name inserts --command "make measure-inserts" "$(or $(OUT),$(CACHE)/inserts)"

.PHONY: measure-ten-minutes
measure-ten-minutes: ## Ten minutes of inserts into betree, second by second (RUNS=1)
	@$(CC_CHECK)
	cargo build --release --package pando-bench-engine
	folders=""
	for run in $$(seq $(or $(RUNS),1)); do
		folder="$(or $(OUT),$(CACHE)/ten-minutes)/run-$$run"; folders="$$folders $$folder"
		$(TARGET)/release/pando-bench-engine all --out "$$folder" --peers betree --phases capped $(ENGINES_SETUP) --insert-seconds 600
	done
	python3 tests/measurements/engines.py --name ten-minutes --command "make measure-ten-minutes" $$folders

.PHONY: fuzz-smoke
fuzz-smoke: ## Every fuzz target for some seconds (needs the nightly toolchain and cargo-fuzz)
	cargo run --quiet --package pando-fuzzing --example corpus -- unpack fuzz/corpus
	for target in $$(cargo +nightly fuzz list); do cargo +nightly fuzz run $$target -- -max_total_time=20 -len_control=0 -max_len=600 || exit 1; done

# ---- what tests need

$(PYTHON): tests/python/requirements.txt
	python3 -m venv $(CACHE)/python
	$(CACHE)/python/bin/pip install --quiet --disable-pip-version-check -r tests/python/requirements.txt
	touch $(PYTHON)

$(PYMONGO3): tests/legacy/requirements.txt
	python3 -m venv $(CACHE)/pymongo3
	$(CACHE)/pymongo3/bin/pip install --quiet --disable-pip-version-check -r tests/legacy/requirements.txt
	touch $(PYMONGO3)

$(NODE_TESTS)/.installed: tests/node/package.json $(wildcard tests/node/*.mjs)
	mkdir -p $(NODE_TESTS)
	cp tests/node/package.json tests/node/*.mjs $(NODE_TESTS)/
	cd $(NODE_TESTS)
	npm install --no-package-lock --no-audit --no-fund --loglevel=error
	touch $(NODE_TESTS)/.installed

.PHONY: clean
clean: ## Remove what was built and installed; data stays
	cargo clean
	rm -rf $(CACHE)
