# SPDX-License-Identifier: MIT
# What people type; CMake does the work.
#   make            build/microprop, build/libmicroprop.a, build/libmicroprop.so
#   make demo       set up, build, train a network and show it, beside the machines of 1989
#   make quick      build, tests of ten seconds
#   make test       set up, build once, run every plain test
#   make check      slow tests, MPI, layering, format; ASan and UBSan, TSan, fuzzing with fixed seeds
#   make check-all  clang-tidy, cppcheck, gcc -fanalyzer; packages, the static program, check-cross; exported networks in onnxruntime (npm); the page in chromium
#   make check-cross  [CROSS=--long] aarch64, riscv64, x86-64 without FMA, musl (qemu), WebAssembly (node): the bits of this machine
#   make fuzz       [SECONDS=600] new seeds for so long in all; inputs that reach new code go to test/fuzz/corpus
#   make torture    [TORTURE_S=600] kills, flipped bits, failing calls, full disks, network faults, fuzzing: nothing may be lost
#   make repeat     [TIMES=20] random tests and fuzzing again and again: the same counts every time
#   make format     clang-format
#   make coverage   line and branch coverage per file
#   make dist       build/microprop-VERSION.tar.gz, the sources
#   make deb        build/packages/*.deb, checked by lintian
#   make deb-arm64  build/packages-arm64/*.deb, cross-built in a chroot and run under qemu
#   make static     build/static/microprop, linked statically: for any Linux of this architecture
#   make web        build/web: the program as WebAssembly in a page, a folder that any web server can serve
#   make wheel      dist/microprop-VERSION-py3-none-PLATFORM.whl: the Python package with the library inside
#   make install    [PREFIX=/usr/local] [DESTDIR=]
PREFIX  ?= /usr/local
JOBS    ?= $(shell nproc)
SECONDS ?= 600
TIMES   ?= 20
export TORTURE_S ?= 600
COVERED = -f lib/ -f target/ -f api/ -f cli/
CTEST   = ctest --output-on-failure -j $(JOBS)
SOURCES = $(shell git ls-files '*.[ch]' '*.inc')

all: build/CMakeCache.txt
	@cmake --build build -j $(JOBS) -- --no-print-directory

build/CMakeCache.txt:
	@./setup build
	@cmake --preset release -DCMAKE_INSTALL_PREFIX=$(PREFIX) > /dev/null

demo: all
	@build/microprop train examples/letters.topo --curve --words 6
	@echo
	@build/microprop gf11 table2

build-%: | setup-test
	@cmake --preset $* > /dev/null
	@cmake --build --preset $* -j $(JOBS) -- --no-print-directory > build/$*.log 2>&1 || { cat build/$*.log; exit 1; }

setup-%:
	@./setup $*

quick: setup-test build-test
	$(CTEST) --test-dir build -L quick

test: setup-test build-test
	$(CTEST) --test-dir build -L test

check: setup-check build-sanitize build-thread
	$(CTEST) --test-dir build/check -L check

check-all: setup-check-all build-test
	@test/check/analyze
	@test/check/packages
	@npm install --prefix build/ort onnxruntime-web@1 >build/ort.log 2>&1 || { echo "no onnxruntime-web: see build/ort.log"; exit 0; }; \
		MICROPROP=$$PWD/build/microprop SOURCE_DIR=$$PWD ORT=$$PWD/build/ort test/check/onnx
	@npm install --prefix build/browser puppeteer-core@24 >build/browser.log 2>&1 || { echo "no puppeteer-core: see build/browser.log"; exit 0; }; \
		MICROPROP=$$PWD/build/microprop SOURCE_DIR=$$PWD BROWSER=$$PWD/build/browser test/check/browser || [ $$? = 77 ]
	@test/cross/run
	@node test/web/browser.mjs

check-cross: setup-check-cross build-test
	@test/cross/run $(CROSS)

web: setup-web
	@web/build

build-sanitize build-thread: build-test      # whose kernels they link

fuzz: setup-check build-sanitize
	@ls build/sanitize/test/fuzz_* | xargs -P $(JOBS) -I{} test/fuzz/run {} $$(($(SECONDS) * $(JOBS) / $$(ls build/sanitize/test/fuzz_* | wc -l) + 1))

torture: setup-check build-sanitize
	@test/torture/run

repeat: setup-check build-sanitize
	@test/check/repeat $(TIMES)

format: setup-check
	@clang-format -i $(SOURCES)

coverage: setup-coverage build-coverage
	@$(CTEST) --test-dir build/coverage -L test > /dev/null || true
	@gcovr -r . $(COVERED) build/coverage
	@gcovr -r . $(COVERED) --branches -s build/coverage

VERSION = $(shell sed -n 's/^project.microprop VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
dist:
	@mkdir -p build
	@git archive --prefix=microprop-$(VERSION)/ -o build/microprop-$(VERSION).tar.gz HEAD

deb: setup-deb dist
	@rm -rf build/packages && mkdir -p build/packages
	@tar xzf build/microprop-$(VERSION).tar.gz -C build/packages
	@cd build/packages/microprop-$(VERSION) && DEB_BUILD_OPTIONS=parallel=$(JOBS) dpkg-buildpackage -us -uc -b > ../log 2>&1 || { tail -50 ../log; exit 1; }
	@cd build/packages && rm -rf microprop-$(VERSION) && lintian --allow-root --fail-on error,warning *.changes && ls *.deb

deb-arm64: setup-check-all build-test
	@test/cross/deb

static: setup-build
	@cmake -S . -B build/static -DMICROPROP_STATIC=ON > /dev/null
	@cmake --build build/static -j $(JOBS) --target microprop -- --no-print-directory

wheel: build/CMakeCache.txt
	@cmake --build build -j $(JOBS) --target microprop_wheel -- --no-print-directory > /dev/null
	@python3 python/backend.py dist

install: all
	@cmake --install build --prefix $(PREFIX)

clean:
	@rm -rf build

.PHONY: all demo quick test check check-all check-cross fuzz torture repeat format coverage wheel install dist deb deb-arm64 static web clean
