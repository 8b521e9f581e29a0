# The entry points; CI calls what a person calls. Each installs what is missing (scripts/setup).
.PHONY: help demo kernel test test-why bank lint bench bench-uncompressed fuzz setup players peers demo-players install uninstall tools advisories python bench-python wheel test-wheel deb release generate notebooks

help:
	@echo "make demo        stream real video over an emulated link, and report what happened"
	@echo "make install     put suiro, its man pages and shell completions into ~/.local (PREFIX=DIR for elsewhere)"
	@echo "make uninstall   remove what make install put there"
	@echo "make bank        judge suiro why by 200 trials with known causes"
	@echo "make kernel      build the kernel of virtual time (4 minutes; make test, wheel and deb also build it)"
	@echo "make players      install other players: VLC, GStreamer, dash.js, hls.js, Shaka Player"
	@echo "make peers        build pion (Go) for scenarios, and the programs that tests of interoperation run: clients and a relay of Media over QUIC (30 minutes)"
	@echo "make demo-players play with each of them for 30 s through a link"
	@echo "make test        lint, all tests, the page's tests"
	@echo "make test-why    every scenario in which one cause acts, live, without and with noise (3 minutes)"
	@echo "make lint        formatting, clippy, licences, the page, generated files"
	@echo "make generate    write the generated files again: schema, references, the page and its types"
	@echo "make bench       the benchmarks next to their peers, as one table and bench.json"
	@echo "make bench-uncompressed  streams of uncompressed video compared with GStreamer's and ffmpeg's; needs root"
	@echo "make python      types and tests of the Python package, with a cluster and notebooks"
	@echo "make bench-python  the targets of the Python package and of sweeps, measured (5 minutes)"
	@echo "make notebooks   run the notebooks of docs/ and keep their outputs"
	@echo "make wheel       build dist/suiro-*.whl; make test-wheel installs it in a bare Debian 13 (root)"
	@echo "make deb         build dist/suiro_*.deb"
	@echo "make release     wheel, Debian package, source archive and checksums in dist/ (TAG=v0.1.0 checks the version)"
	@echo "make fuzz        every fuzz target for 30 s (SECONDS_EACH=n for longer)"
	@echo "make setup       only install what is missing"
	@echo "make tools       build the tools that only lint uses (cargo-deny, about 5 minutes)"
	@echo "make advisories  known vulnerabilities of dependencies; asks the network"

demo:
	@scripts/setup demo
	@scripts/demo

kernel:
	@scripts/setup kernel
	@kernel/build

install:
	@PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" scripts/install

uninstall:
	@PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" scripts/install --undo

test:
	@scripts/setup test
	@scripts/test

test-why:
	@scripts/setup test
	scripts/cargo test --locked -q -p suiro --test why -- all
	scripts/cargo test --locked -q -p suiro --test why -- noisy

players:
	@scripts/setup players

peers:
	@scripts/setup peers

demo-players:
	@scripts/setup players
	@scripts/demo players

lint:
	@scripts/setup test
	@scripts/test lint

bench:
	@scripts/setup bench
	@scripts/bench

bench-uncompressed:
	@scripts/setup demo
	@scripts/bench-uncompressed

bank:
	@scripts/setup bank
	@scripts/bank

fuzz:
	@scripts/setup build
	@scripts/fuzz

setup:
	@scripts/setup test

tools:
	@scripts/setup tools

advisories:
	@scripts/setup tools
	@scripts/advisories

python:
	@scripts/setup python
	@scripts/python all

bench-python:
	@scripts/setup python
	@scripts/bench-python

notebooks:
	@scripts/setup python
	@SUIRO_REGENERATE=1 scripts/python notebooks

wheel:
	@scripts/setup kernel
	@scripts/wheel

test-wheel:
	@scripts/test-wheel

generate:
	@scripts/setup test
	@scripts/generate

deb:
	@scripts/setup kernel
	@scripts/deb

release:
	@scripts/setup kernel
	@scripts/release $(TAG)
