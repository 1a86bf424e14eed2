# `make` lists the targets. Each needs Go and, where it says so, something else.
# GOCCL_REQUIRE=all turns what cannot run here from a note into a failure, as CI wants it.

MAKEFLAGS += --no-print-directory
SHELL     := /bin/bash

PLATFORMS  := linux/amd64 linux/arm64 darwin/arm64 windows/amd64
FUZZTIME   ?= 30s
BENCHTIME  ?= 1s
MODULES     = $(shell find . -name go.mod -not -path './.*' -not -path './internal/tools/*' -exec dirname {} \;)

# The module needs no C compiler, so its tests have none; `make race` is the exception.
export CGO_ENABLED := 0

# $(call need,COMMAND,PACKAGE): a command of the shell that is true where COMMAND is there. Where it
# is not, it says so and skips the rest, or fails under GOCCL_REQUIRE=all.
need = { command -v $(1) >/dev/null || { echo "$@: NOT RUN: no $(1) here (Debian: apt-get install $(2))"; [ "$$GOCCL_REQUIRE" != all ]; exit; }; }

.PHONY: help test test-all test-go test-lab race noasm cross arm64 fuzz bench lint format vet staticcheck shell generated generate

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

test: ## a sample of every suite, in under five minutes
	go test -short -timeout 5m ./...

test-all: test-go test-lab ## every suite: test-go and test-lab

test-go: ## the Go tests in full, and what they skipped
	set -o pipefail; go test -json -timeout 20m ./... | go run ./test/report

test-lab: ## bench under real launchers on two hosts (root and the packages of test/lab/need)
	@if test/lab/need; then test/lab/run.sh; else echo "$@: NOT RUN"; [ "$$GOCCL_REQUIRE" != all ]; fi

race: ## the sample under the race detector (a C compiler)
	@$(call need,cc,gcc libc6-dev); CGO_ENABLED=1 go test -race -short -timeout 20m ./...

noasm: ## the sample without assembly: the specification in the kernels' place
	go test -short -tags noasm ./ccl/internal/reduce ./ccl

cross: arm64 ## build and vet for every platform, tests included; test arm64
	@for p in $(PLATFORMS); do echo "build and vet for $$p"; \
		export GOOS=$${p%/*} GOARCH=$${p#*/}; go build ./... && go vet ./... || exit 1; done

arm64: ## the kernels and algorithms on an emulated arm64 (qemu-user)
	@$(call need,qemu-aarch64,qemu-user); GOOS=linux GOARCH=arm64 \
		go test -short -exec qemu-aarch64 ./ccl/internal/reduce ./ccl/internal/algo

fuzz: ## every fuzz target for FUZZTIME (30s)
	@set -o pipefail; go test -list '^Fuzz' ./... | \
	awk '/^Fuzz/ { name[n++] = $$1 } /^ok/ { for (i = 0; i < n; i++) print $$2, name[i]; n = 0 }' | \
	while read -r package name; do echo "$$package $$name"; \
		go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) "$$package" </dev/null || exit 1; done

bench: ## benchmarks of kernels and collectives, BENCHTIME (1s) each
	go test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) ./ccl/...

lint: format vet staticcheck shell generated ## all static checks, and that generated files are up to date
	go test ./test/imports

format: # gofmt
	@files=$$(gofmt -l .); [ -z "$$files" ] || { echo "gofmt -w these: $$files"; exit 1; }

vet: # go vet for every platform, with and without assembly, and in the nested modules
	@for p in $(PLATFORMS); do for tags in '' noasm; do echo "go vet for $$p $$tags"; \
		GOOS=$${p%/*} GOARCH=$${p#*/} go vet -tags "$$tags" ./... || exit 1; done; done
	@for m in $(MODULES); do go vet -C $$m ./... || exit 1; done

staticcheck: # pinned in internal/tools
	@bin=$$(mktemp -d) && trap 'rm -rf "$$bin"' EXIT && \
	go build -C internal/tools -o "$$bin/" honnef.co/go/tools/cmd/staticcheck && \
	for p in $(PLATFORMS); do for tags in '' noasm; do echo "staticcheck for $$p $$tags"; \
		GOOS=$${p%/*} GOARCH=$${p#*/} "$$bin/staticcheck" -tags "$$tags" ./... || bad=1; done; done; [ -z "$$bad" ]

shell: # shellcheck of the scripts
	@$(call need,shellcheck,shellcheck); shellcheck -S warning .ci/run test/lab/*.sh test/lab/need test/lab/netlab-rsh test/lab/fake-pals/pbs-run

generated: # a copy of the tree, generated anew, is the same
	@copy=$$(mktemp -d) && trap 'rm -rf "$$copy"' EXIT && tar -c --exclude ./.git . | tar -x -C "$$copy" && \
	go generate -C "$$copy" ./... && diff -r --exclude .git . "$$copy" || { echo "run make generate"; exit 1; }

generate: ## regenerate the kernels (ccl/internal/reduce/gen)
	go generate ./...
