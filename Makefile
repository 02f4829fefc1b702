# SPDX-License-Identifier: MIT
# What people type; CMake does the work.
#   make            build/microprop, build/libmicroprop.a, build/libmicroprop.so
#   make demo       set up, build, train a network and show it, beside the machines of 1989
#   make test       set up, build, run every test: plain, under ASan and UBSan, and a minute of fuzzing
#   make coverage   line and branch coverage per file
#   make install    [PREFIX=/usr/local] [DESTDIR=]
PREFIX ?= /usr/local
JOBS   ?= $(shell nproc)
COVERED = -f lib/ -f target/ -f api/ -f cli/
CTEST   = ctest --output-on-failure -j $(JOBS)

all: build/CMakeCache.txt
	@cmake --build build -j $(JOBS) -- --no-print-directory

build/CMakeCache.txt:
	@./setup build
	@cmake --preset release -DCMAKE_INSTALL_PREFIX=$(PREFIX) > /dev/null

demo: all
	@build/microprop train examples/letters.topo --curve --words 6
	@echo
	@build/microprop gf11 table2

build-%:
	@./setup test
	@cmake --preset $* > /dev/null
	@cmake --build --preset $* -j $(JOBS) -- --no-print-directory

test: build-test build-sanitize build-fuzz
	$(CTEST) --test-dir build
	$(CTEST) --test-dir build/sanitize -LE slow
	$(CTEST) --test-dir build/fuzz -L fuzz

coverage: build-coverage
	@./setup coverage
	@$(CTEST) --test-dir build/coverage -LE slow > /dev/null || true
	@gcovr -r . $(COVERED) build/coverage
	@gcovr -r . $(COVERED) --branches -s build/coverage

install: all
	@cmake --install build --prefix $(PREFIX)

clean:
	@rm -rf build

.PHONY: all demo test coverage install clean
