# `make` lists the targets. Each needs Go and, where it says so, something else.
# GOCCL_REQUIRE=all turns what cannot run here from a note into a failure, as CI wants it.

MAKEFLAGS += --no-print-directory
SHELL     := /bin/bash

PLATFORMS  := linux/amd64 linux/arm64 darwin/arm64 windows/amd64
FUZZTIME   ?= 30s
BENCHTIME  ?= 1s
MODULES     = $(shell find . -name go.mod -not -path './.*' -not -path './internal/tools/*' -exec dirname {} \;)

# compiled is a command that compiles all packages and links the one program that has nearly all of them in it;
# go build ./... would link a dozen.
compiled = go list -export ./... >/dev/null && go build -o /dev/null ./bench

# $(call platforms,COMMAND): the command for each platform and set of tags, on the packages that have other files there.
platforms = set -o pipefail; test/platforms.sh | { bad=; while read -r os arch cgo tags packages; do \
	tags=$${tags\#-}; echo "$(1) for $$os/$$arch, CGO_ENABLED=$$cgo, tags $${tags:-none}"; \
	GOOS=$$os GOARCH=$$arch CGO_ENABLED=$$cgo $(1) -tags "$$tags" $$packages </dev/null || bad="$$bad $$os/$$arch"; done; \
	test -z "$$bad" || { echo "$(1) failed for:$$bad" >&2; exit 1; }; }

# The module needs no C compiler, so its tests have none; `make race` is the exception.
export CGO_ENABLED := 0

# $(call need,COMMAND,PACKAGE): a command of the shell that is true where COMMAND is there. Where it
# is not, it says so and skips the rest, or fails under GOCCL_REQUIRE=all.
need = { command -v $(1) >/dev/null || { echo "$@: NOT RUN: no $(1) here (Debian: apt-get install $(2))"; [ "$$GOCCL_REQUIRE" != all ]; exit; }; }

.PHONY: $(shell sed -nE 's/^([a-z0-9-]+):.*/\1/p' Makefile)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

# Without vet, which takes an eighth of the whole where nothing is cached: make lint vets.
test: ## a sample of every suite, in six minutes
	test/halves.sh -short -vet=off -timeout 20m -- ./...

numbers: ## what README says of make test, how many tests and how long, from a run of it (a quiet machine; 5 minutes)
	test/halves.sh -readme README.md -short -vet=off -timeout 20m -- ./...

minutes: ## docs/measured/ci.md: where CI's minutes go, from a run of it (Debian, root; a quiet machine; 45 minutes)
	MINUTES=docs/measured/ci.md .ci/run

nightly: ## what CI leaves out because it takes long, with CI's table (Debian, root; 10 hours; NIGHTLY=minutes)
	.ci/nightly

test-all: test-go test-lab ## every suite: test-go and test-lab

test-rest: test-long test-lab # what test leaves of test-all

test-long: # the tests that -short skips or shortens; with PART=I/N those of one package in N
	args=$$(go run ./test/long -part '$(PART)') && eval "set -- $$(printf '%q ' $$args)" && test/halves.sh -timeout 40m "$$@"

test-go: ## the Go tests in full, and what they skipped
	set -o pipefail; go test -json -timeout 20m ./... | go run ./test/skipreport

test-lab: ## bench under real launchers on two hosts (root and the packages of test/lab/need)
	@if test/lab/need; then test/lab/run.sh; else echo "$@: NOT RUN"; [ "$$GOCCL_REQUIRE" != all ]; fi

NCCL_TESTS = all_reduce all_gather broadcast reduce reduce_scatter alltoall alltoallv gather scatter sendrecv

nccl-tests: ## DIR=...: bench there, by the names of nccl-tests' programs, to be called in their place
	@test -n "$(DIR)" || { echo "$@: where to? make $@ DIR=..." >&2; exit 2; }
	mkdir -p "$(DIR)" && go build -o "$(DIR)/bench" ./bench
	for name in $(NCCL_TESTS); do ln -sf bench "$(DIR)/$${name}_perf" || exit; done

streams: ## what large messages carry over TCP beside a program in C and iperf3, by connections, delay and loss (root; half an hour of a quiet machine, with QUICK=1 some minutes)
	@if test/lab/need netlab delay; then test/lab/streams.sh $(if $(QUICK),-quick); else echo "$@: NOT RUN"; [ "$$GOCCL_REQUIRE" != all ]; fi

wan: ## ranks that come and go, the order of hosts, and an AllReduce, over slow links between four hosts (root; a quiet machine)
	@if test/lab/need netlab delay; then test/lab/churn.sh -last $(or $(LAST),1m) $(if $(BARS),-bars) && test/lab/order.sh && test/lab/wan.sh; else echo "$@: NOT RUN"; [ "$$GOCCL_REQUIRE" != all ]; fi

test-faults: ## delay, loss and partition between three hosts, and between five with spares (root)
	@if test/lab/need netlab delay; then test/lab/faults.sh && test/lab/spares.sh; else echo "$@: NOT RUN"; [ "$$GOCCL_REQUIRE" != all ]; fi

# Tests of what bench writes, of its statistics, of memory, and of hundreds of ranks, which run nothing side by side but what
# others run, too: make test has them.
unraced = TestBoth|TestHTMLInABrowser|TestPagesInABrowser|TestStoredRuns|TestJSONSchema|TestTableParses|TestTwins|TestTwinsInTurns|TestPlanted|TestCoverage|TestTrials|TestScaleCalls|TestScaleConnections|TestR13NothingGrows

COVER ?= ./ccl/... ./bench/... ./train/... ./internal/... ./mpi ./xla/...
cover: ## how much of each package the sample of its tests runs, and of all (COVER: packages)
	@f=$$(mktemp) && trap 'rm -f "$$f"' EXIT && go test -short -timeout 30m -coverprofile "$$f" $(COVER) && go tool cover -func "$$f" | tail -1

race: ## the sample under the race detector: the packages whose tests run anything side by side (a C compiler); with PART=I/N one in N
	@$(call need,cc,gcc libc6-dev); packages=$$(go run ./test/long -raced -part '$(PART)') && CGO_ENABLED=1 test/halves.sh -race -short -skip '^($(unraced))$$' -timeout 20m -- $$packages

race-long: ## every test of race's packages under the race detector (a C compiler; an hour)
	@$(call need,cc,gcc libc6-dev); packages=$$(go run ./test/long -raced) && CGO_ENABLED=1 test/halves.sh -race -skip '^($(unraced))$$' -timeout 2h -- $$packages

model: ## the agreement of Shrink, explored for 4 ranks: 2 that are lost, 1 that gives up, no connection that breaks; and with spares, in partitions
	go test -timeout 60m -run '^Test(Shrink|Replace)$$' -v ./test/model -args -ranks 4 -crashes 2 -breaks 0 -quits 1

# Builds are what make tags builds: whether with cgo, and the tags.
BUILDS ?= 1:nccl 1:rccl 1:oneccl 1:mpi 1:xla 1:$(ENGINES) 0:$(ENGINES) 0:fault 0:nocheck
ENGINES = nccl,rccl,oneccl,mpi,xla
tags: builds ## build with every tag, alone and together, and with all vendors together without cgo (a C compiler)
	@for c in 1 0; do echo "vet -directive with all tags, CGO_ENABLED=$$c"; CGO_ENABLED=$$c go vet -directive -tags $(ENGINES),fault ./... || exit 1; done
	@echo "vet -tags nvml"; CGO_ENABLED=1 CGO_CFLAGS=-w go vet -tags nvml ./bench/...

builds: # the builds of tags, or BUILDS
	@$(call need,cc,gcc libc6-dev); for build in $(BUILDS); do t=$${build#*:} c=$${build%%:*}; \
		echo "build -tags $$t, CGO_ENABLED=$$c"; ( export CGO_ENABLED=$$c GOFLAGS="$$GOFLAGS -tags=$$t"; $(compiled) ) || exit 1; done

gpu: ## packages gpu, cuda, rocm and train/device, bench, two ranks on one device, and gpu-bundle, on the fake libraries; with GOCCL_TEST_GPU=1 on devices (a C compiler)
	@$(call need,cc,gcc libc6-dev); CGO_ENABLED=1 go test -timeout 10m -tags nccl,rccl ./internal/gpu/... ./gpu ./cuda ./rocm ./train/device ./examples/multigpu ./test/gpu/...
	@CGO_ENABLED=1 go test -timeout 10m -tags nccl,rccl -run '^TestDevice' ./train/zero ./train/ddp ./train/ckpt ./train/mirror
	@CGO_ENABLED=1 CGO_CFLAGS=-w go test -tags nvml ./bench/internal/nvml
	@go test -timeout 10m -run '^Test(OneFile|OnTheFake|Graph|DeviceHangs|RegisteredAndHinted|BackendsSideBySide)$$' ./bench

kernels: ## compiles kernels.cu of train/device and gpu to PTX (python3, pip: downloads 130 MB once)
	dir=$$(train/device/ptx/fetch.sh) && train/device/ptx/compile.py "$$dir" train/device/kernels.cu gpu/testdata/kernels.cu

kernels-check: ## kernels.ptx is what NVRTC makes of kernels.cu, and ptxas takes it for all devices (python3, pip: downloads 130 MB once)
	dir=$$(train/device/ptx/fetch.sh) && DEVICE_TEST_NVRTC=$$dir go test -count 1 -run '^TestCompiled$$' -v ./train/device

xla: SHORT ?= -short
xla: ## packages xla, xla/hlo and xla/nn, train/fit, examples/gpt2, interop/gomlx, and gpjrt.h, on XLA's plugin for CPUs; SHORT= for all layouts (a C compiler, pip: downloads 62 MB once)
	@$(call need,cc,gcc libc6-dev); test/vendor/pjrt/fetch.sh cpu-0.11.2 >/dev/null && \
	set -o pipefail; CGO_ENABLED=1 go test -json $(SHORT) -timeout 20m -tags xla,nccl ./xla/... ./train/fit/... ./examples/gpt2 ./examples/finetune ./test/vendor/pjrt | \
		go run ./test/skipreport $(SHORT)
	CGO_ENABLED=1 go test -C interop/gomlx -timeout 10m -tags xla,nccl -run '^TestOnXLA' .

models: ## xla/nn/models beside transformers: logits, losses, tokens, and what is saved read back (a C compiler, pip: fetches 700 MB once; KINDS, SHORT=-short)
	@$(call need,cc,gcc libc6-dev); SHORT='$(SHORT)' test/peers/transformers/run.sh $(KINDS)

models-step: ## the time and memory of a step of package train/fit beside transformers, eager and compiled, in ROUNDS (5) turns (as models, g++; a quiet machine)
	@$(call need,cc,gcc libc6-dev); test/vendor/pjrt/fetch.sh cpu-0.11.2 >/dev/null && go run ./test/peers/transformers -rounds $(or $(ROUNDS),5)

xla-h100: ## GPT-2 compiled for an H100 that is not there: its products, its attention, its memory (a C compiler, pip: downloads 400 MB once)
	@$(call need,cc,gcc libc6-dev); dir=$$(test/vendor/pjrt/fetch.sh cuda13-0.11.2) && \
	GPT2_TEST_CUDA=$$dir CGO_ENABLED=1 go test -timeout 10m -tags xla -count 1 -v -run '^TestCompiledForH100$$' ./examples/gpt2

native: ## the NCCL and RCCL engines on the fake library, also with -race and, by native-asan, AddressSanitizer (gcc)
	@$(call need,cc,gcc libc6-dev); $(MAKE) -j3 -O native-plain native-race native-asan # they wait for most of their time

native-plain:
	@CGO_ENABLED=1 go test -timeout 15m -tags nccl,rccl ./ccl/internal/native/...
	@CGO_ENABLED=1 go test -timeout 5m -tags nccl,rccl -run '^(TestQueuedCallHasItsPlace|Test.*Mismatch(HasThePlace|NumbersTheCalls)|TestWayOfQueued)$$' ./ccl ./test/ways # as a build with a backend counts calls

native-race:
	@CGO_ENABLED=1 go test -race -short -timeout 15m -tags nccl,rccl ./ccl/internal/native

native-asan: ## the engines and the fake library under AddressSanitizer; not what measures memory or time (gcc)
	@$(call need,cc,gcc libc6-dev); d=$$(mktemp -d) && trap 'rm -rf $$d' EXIT && test/fake/build.sh $$d/libgocclfake.so -fsanitize=address && \
		ASAN_OPTIONS=detect_leaks=0:handle_segv=0 NATIVE_TEST_LIBRARY=$$d/libgocclfake.so CGO_ENABLED=1 \
		go test -asan -short -timeout 15m -tags nccl,rccl -skip 'Overhead|Allocations' ./ccl/internal/native

test-mpi: test-mpi-go test-mpi-lab ## one binary under seven MPIs, and on two hosts (a C compiler, mpich, openmpi-bin, pip; GOCCL_TEST_LARGE=1: 9 GB, counts above 2^31)

test-mpi-go: # one binary under seven MPIs, or under MPI alone, by its name
	@$(call need,cc,gcc libc6-dev); test/mpi/fetch.sh && GOCCL_TEST_MPI='$(MPI)' CGO_ENABLED=1 go test -tags mpi -count 1 -timeout 30m ./mpi ./ccl/internal/mpiengine ./test/mpi

test-mpi-lab: # the same on two hosts
	@if test/lab/need netlab mpich openmpi; then test/mpi/lab.sh; else echo "$@: NOT RUN"; [ "$$GOCCL_REQUIRE" != all ]; fi

cases-mpi: ## 10,000 random calls over cpu, mpi under each MPI, and oneccl (GOCCL_ONECCL_LIB), compared (as test-mpi)
	@$(call need,cc,gcc libc6-dev); test/mpi/fetch.sh && CGO_ENABLED=1 go test -tags mpi -count 1 -v -timeout 0 -run '^TestCases$$' ./test/mpi -args -cases 10000

asan: ## package mpi, its engine, and random calls over it on three ranks under AddressSanitizer (gcc, mpich, openmpi-bin); not what measures memory or time
	@$(call need,mpiexec.hydra,mpich); dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && export CGO_ENABLED=1 ASAN_OPTIONS=detect_leaks=0:handle_segv=0 && \
	go test -c -asan -tags mpi -o "$$dir/mpi" ./mpi && mpiexec.hydra -n 2 "$$dir/mpi" -test.short -test.skip Leak && \
	mpiexec.openmpi --allow-run-as-root --oversubscribe -n 2 "$$dir/mpi" -test.short -test.skip Leak && \
	go test -asan -count 1 -short -tags mpi ./ccl/internal/mpiengine && \
	GOCCL_TEST_ASAN=1 go test -tags mpi -count 1 -timeout 30m -run '^TestCases$$/.*of_Debian' ./test/mpi

vendor: ## the tables of include/ against the vendors' headers and libraries (cc, CPython 3.11 with pip, apt; 2.5 GB of wheels and packages)
	@$(call need,pip3,python3-pip); set -o pipefail; CGO_ENABLED=1 go test -json -timeout 25m ./test/vendor/nccl ./test/vendor/cudart | go run ./test/skipreport

deploy: ## the manifests of deploy/, strictly decoded into the types of the projects that read them
	go test -C deploy/test ./...

interop: deploy ## the nested modules: deploy's; gomlx; prometheus; checkpoints in an S3 server; gonum; gorgonia.org/cu; empi and leabra over goccl and Open MPI (cc, pip; headers of Open MPI, X11, GL)
	@$(call need,cc,gcc libc6-dev); CGO_ENABLED=1 go test -C interop/cu -timeout 15m ./...
	CGO_ENABLED=1 go test -C interop/gomlx -race -timeout 5m ./...
	go test -C interop/prometheus -timeout 5m ./...
	go test -C interop/blob -timeout 15m ./...
	go test -C examples/internal/mat/gonum -timeout 5m ./...
	go test -C interop/empi/shim -timeout 5m ./...
	go test -C interop/empi -timeout 20m ./...

store-kills: ## kill -9 of a process that saves to an S3 server, 200 times, at each of its requests in turn
	GOCCL_TEST_KILLS=200 go test -C interop/blob -count 1 -timeout 60m -run '^TestKilled$$' -v .

torch-files: ## train/ckpt/pt against PyTorch: .pt and .distcp, both ways (pip, cc: fetches 540 MB once)
	dir=$$(test/peers/torch/fetch.sh) && GOCCL_TEST_TORCH=$$dir go test -count 1 -timeout 10m -run '^TestTorch$$' -v ./train/ckpt/pt

vendor-oneccl: ## oneCCL for real, without a GPU: its CPU plugin and SYCL's CPU device (g++; downloads 890 MB once)
	@$(call need,g++,g++); test/vendor/oneccl/run.sh

gpu-bundle: ## builds gpu-bundle/, to be run on a machine with one GPU or more (docs/gpu.md)
	test/gpu/bundle.sh gpu-bundle

gpu-train: ## builds gpu-train/, to be run on a machine with one GPU, python3, torch and jax's CUDA plugin (docs/gpu.md; a C compiler)
	test/gpu/train-bundle.sh gpu-train

install: ## libgoccl.so, goccl.h and goccl.pc below PREFIX, /usr/local (a C compiler; LIBDIR and DESTDIR as usual)
	@capi/install.sh $(or $(PREFIX),/usr/local)

xpu-shim: ## libgocclxpu.so, the shim over SYCL that package xpu opens (a C++ compiler and SYCL: SYCL_ROOT)
	@xpu/shim/build.sh $(or $(OUT),.)

noasm: ## without assembly: the specification in the kernels' place, in the kernels' tests and in what collectives compute
	go test -short -tags noasm ./internal/reduce ./examples/internal/mat && go test -short -tags noasm -run 'Product|RankOrder|Operand|Number|Avg' ./ccl

cross: arm64 ## build for every platform, tests included; test arm64
	@for p in $(PLATFORMS); do echo "build for $$p"; export GOOS=$${p%/*} GOARCH=$${p#*/}; \
		$(compiled) && go vet -directive ./... || exit 1; done

# CPUs that QEMU emulates, the levels of kernels that each has, and which tests run on it.
cpus = 'max neon+fp16+bf16,neon,generic .' 'neoverse-n1 neon+fp16,neon,generic Levels|FuncIsIts' 'cortex-a72 neon,generic Levels|Specification|Offset'

arm64: ## the kernels, algorithms and lock-free parts on an emulated arm64 (qemu-user)
	@$(call need,qemu-aarch64,qemu-user); go test -C internal/reduce/gen . && export GOOS=linux GOARCH=arm64 && dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && \
		go test -c -o "$$dir/reduce" ./internal/reduce && for cpu in $(cpus); do read -r cpu levels tests <<<"$$cpu"; \
			echo "kernels on $$cpu"; (cd internal/reduce && qemu-aarch64 -cpu $$cpu "$$dir/reduce" -test.short -test.run "$$tests" -levels $$levels) || exit; done && \
		go test -short -exec qemu-aarch64 ./internal/algo ./train/optim/... ./examples/internal/mat && \
		go test -short -exec qemu-aarch64 -skip 'TestDeathOfAnotherProcess|TestLitmusDekker|TestFlagMeetsClose' ./ccl/internal/ordered ./ccl/internal/proc ./internal/op && \
		go test -short -exec qemu-aarch64 -skip 'TestHugePages|TestTakeBack|TestReap' ./ccl/internal/shm ./ccl/internal/region ./ccl/internal/plane ./ccl/internal/links ./ccl/internal/cpu # which ask the kernel what is mapped: the emulator's mappings there

insns: ## the instructions that the kernels take on arm64, beside Go's loops, as an emulator counts them (qemu-user, a C compiler)
	@$(call need,qemu-aarch64,qemu-user); $(call need,cc,gcc libc6-dev); test/insns/run.sh

herd: ## what the memory model of Armv8 allows of the shapes of stores and loads that the engine rests on (herd7)
	@test/herd.sh

litmus: ## on a machine whose memory order is in question, such as a real arm64: the shapes of stores and loads, 10^8 times, and the parts built on them
	go test -count=1 -v -run Litmus -timeout 0 ./ccl/internal/ordered -litmus 100000000
	go test -count=20 -timeout 0 -run 'Pipe|Ring|Log|Record|Rendezvous|Region|Round|Flag|Space' ./ccl/internal/region ./ccl/internal/links ./ccl/internal/plane ./ccl/internal/cpu ./ccl/internal/shm ./ccl/internal/ordered

fuzz: ## every fuzz target for FUZZTIME (30s)
	test/fuzz.sh $(FUZZTIME)

bench: ## benchmarks of kernels and collectives, BENCHTIME (1s) each
	go test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) ./ccl/... ./internal/reduce ./examples/internal/mat ./train/...

CHAOS   ?= 10000
CORNERS ?= $(CHAOS)
MANY    ?= 50
DATA    ?= 60
chaos: ## CHAOS (10,000) random faults in random jobs, CORNERS (as many) jobs of many Comms in trouble, DATA (60) of memory of all sorts
	go test -tags fault ./ccl/internal/inject && go test -tags fault ./ccl/internal/rounds -run TestReadOf && go test -tags fault ./ccl -run 'TestStoppedWriter|TestLateTouch|TestBuilds|TestGrowAtEachPoint|TestLinkBreaks'
	go test -tags fault -timeout 0 ./test/chaos -run 'TestR6RandomFaults$$' -v -args -cases $(CHAOS)
	go test -tags fault -timeout 0 ./test/chaos -run 'TestR6Corners$$|TestCornerPoints$$' -v -args -cases $(CORNERS)
	go test -tags fault -timeout 0 ./test/chaos -run 'TestR6Data$$' -v -args -cases $(DATA)

campaign: ## random jobs of the seeds SEEDS (1-300): every byte and every error compared; one that fails is made smaller
	go test -timeout 0 ./test/campaign -run '^TestCampaign$$' -v -args -seeds $(or $(SEEDS),1-300)

world: ## random jobs of the seeds SEEDS (1-1000) and faults of hosts and networks, in virtual time
	go test -timeout 0 ./test/campaign -run '^TestWorld$$' -v -args -seeds $(or $(SEEDS),1-1000)

chaos-many: ## MANY (50) of these faults in jobs of RANKS (200) processes (4 GB)
	go test -tags fault -timeout 0 ./test/chaos -run 'TestR6RandomFaults$$' -v -args -cases $(MANY) -workers 1 -ranks $(or $(RANKS),200)

soak: ## 10^8 small and 10^6 mixed collectives, 10^8 messages, 10^5 slices made and freed, 100 ranks killed and replaced: nothing grows
	CCL_TEST_KILLS=100 go test ./ccl -count=1 -timeout 30m -v -run '^TestReplaceLeavesNoMemory$$'
	go test ./test/soak -timeout 0 -v -args -small 1e8 -mixed 1e6 -pairs 1e8 -churn 1e5

scale: ## simulate the start, a loss and a Shrink of 120,960 ranks on 10,080 hosts, and print their tables (10 minutes, 8 GB)
	go test -count=1 -v -run '^TestMeetingSimulated$$|^TestRootOfAurora$$' ./ccl/boot -args -hosts 10080
	go test -count=1 -timeout 30m -v ./ccl/internal/scale -args -hosts 10080

thousand: ## RANKS (1,000) processes: how long they take to join and to hear of a loss, and what they hold (12 GB; a quiet machine)
	go test -count=1 -timeout 60m -v ./test/scale -args -ranks $(or $(RANKS),1000)

joins: ## OLD=COMMIT: how long 2 to 64 ranks take to join, there and here in turns, ROUNDS (30) of each (a quiet machine; 5 minutes)
	@test -n "$(OLD)" || { echo "$@: which commit? make $@ OLD=..." >&2; exit 2; }
	@dir=$$(mktemp -d) && trap 'rm -r "$$dir"' EXIT && git archive "$(OLD)" | tar -x -C "$$dir" && go test -C "$$dir" -c -o "$$dir/old" ./test/cost && \
		go test -count=1 -timeout 0 -v -run '^TestJoinsInTurns$$' ./test/cost -args -old "$$dir/old" -rounds $(or $(ROUNDS),30)

fit: ## constants of the simulator, fitted to jobs of 64 processes here, predict those of 512: both are measured, in TURNS (3) jobs (a quiet machine; 5 minutes)
	@f=$$(mktemp) && trap 'rm -f $$f' EXIT && go test -count=1 -timeout 30m -v -run '^TestFigures$$' ./test/scale -args -sizes 64,512 -turns $(or $(TURNS),3) -figures $$f && \
		go test -count=1 -v -run '^TestFit$$' ./ccl/internal/scale -args -figures $$f

outer: ## what DiLoCo costs in loss, and what it sends, on 4 ranks: 3,000 steps of a small model in 4 ways, with SEEDS (3) seeds each (15 minutes of processor)
	go test ./examples/gpt -run '^TestCurves$$' -count=1 -timeout 0 -v -args -curves $(or $(SEEDS),3)

resident: ## what a rank of 4 holds at each stage of ZeRO, with 85.1 M parameters, against the formula (8 GB)
	go test ./train/zero -run '^TestResident$$' -count=1 -v -args -resident
	go test ./examples/gpt -run '^TestLarge$$' -count=1 -v -args -large

offload: ## a model on a local disk beside the same one in memory, 4,096 tokens a step, in ROUNDS (3) turns, with the disk's rate: .7 of the speed (a quiet machine; 2 GB of disk)
	go test ./examples/gpt -run '^TestOffloadSpeed$$' -count=1 -timeout 0 -v -args -offloading $(or $(ROUNDS),3)

promises: ## measure R1 to R21 and write the table of docs/measured/promises.md
	go test ./test/promises -count=1 -timeout 20m -v -args -write

kills: ## R19: KILLS (1,000) ranks of training runs killed at random, in 20 layouts, and SECOND (200) jobs in which a second rank is killed within 200 ms: the losses of undisturbed runs, to the bit (an hour)
	go test ./test/promises -run '^TestR19SameLosses$$' -count=1 -timeout 0 -v -args -kills $(or $(KILLS),1000) -second $(or $(SECOND),200)

mirroring: ## what it costs a step of babygpt to mirror the state, each step and each tenth, in ROUNDS (5) turns with and without (a quiet machine; 10 minutes)
	go test ./examples/gpt -run '^TestMirrorCost$$' -count=1 -timeout 0 -v -args -mirroring $(or $(ROUNDS),5)

overhead: ## what Queue.AllReduce on the fake library, and package mpi, cost more than C (as test-mpi; a quiet machine)
	@$(call need,cc,gcc libc6-dev); CGO_ENABLED=1 go test -count=1 -v -tags nccl,rccl -run '^TestProductOverhead$$' ./ccl/internal/native -args -promise
	@test/mpi/fetch.sh && CGO_ENABLED=1 go test -count=1 -v -tags mpi -run '^TestOverhead$$' ./test/mpi -args -promise

late: ## how late a rank goes on that has waited for a peer late by 3 ms (a quiet machine)
	go test -count=1 -v -run '^TestLatePeer$$' ./ccl -args -late 300

starts: ## measure how long 2, 8 and 64 processes take to start, 2 and 4 hosts, and their memory, beside Open MPI, MPICH and Gloo (quiet; 10 minutes)
	go run ./test/peers -case start-2,start-8,start-64,start-tcp-2,start-tcp-4,memory-2,memory-tcp-2 -write docs/measured $(ARGS)

peers: ## measure Open MPI, MPICH and Gloo, where they are, and goccl in turn; keep each case in docs/measured (ARGS=-continue goes on)
	go run ./test/peers -write docs/measured $(ARGS)

wheel: ## dist/: wheels of libgoccl and torch_goccl for the two newest torch, tried without Go and compiler (pip, g++: fetches 1 GB once)
	interop/torch/wheel.sh dist && interop/torch/tests/wheel.sh dist 2.15.0 2.14.1

torch-suite: ## PyTorch's own tests of torch.distributed on goccl, with 2 ranks (pip, g++: fetches 540 MB once)
	interop/torch/tests/run.sh

torch-tests: ## torch-suite with 2, 3 and 4 ranks, and its groups with 8
	interop/torch/tests/run.sh 2 3 4 8

torch-bench: ## measure gloo and goccl through torch in turn (a quiet machine; ARGS='-promise', or '-rounds 3 -quick')
	interop/torch/tests/run.sh bench $(ARGS)

torch: ## measure examples/gpt beside the same model in PyTorch, in turn (pip, cc: fetches 540 MB once; ARGS='-rounds 5 -case char-2')
	go run ./test/peers/torch $(ARGS)

text: ## train/data/bpe, chat and megatron beside Hugging Face's tokenizers and transformers, on 100,000 lines and the templates of trl (python3, pip: fetches 40 MB once; TEXTS=lines)
	@$(call need,pip3,python3-pip); test/text/run.sh

ckpt: ## measure Save beside dd with fsync, in turn, and what a step loses that follows a Saver's Save (a quiet machine; 1 GB of disk)
	go test -count=1 -run '^$$' -bench Save -benchtime 5x ./train/ckpt

sgemm: ## measure the product of examples/internal/mat beside gonum's Sgemm, on one core, in turn
	go test -C examples/internal/mat/gonum -count=1 -bench . -benchtime 20x ./...

training: ## what a new user runs first: 50 steps on two ranks (the tutorial is TestTutorial of examples/gpt)
	CGO_ENABLED=0 timeout 300 go run ./examples/gpt -np 2 -steps 50

loss: ## README's picture of the loss: the run that README shows (Go's own book; two cores, two minutes)
	go run ./examples/gpt -np 2 -steps 1000 -svg docs/loss.svg -sample "The light "

picture: ## README's picture, from docs/measured
	go run -C internal/tools ./picture ../../docs/measured/intel.md ../../docs/busbw.svg

tune: ## measure each algorithm and way of the CPU engine, and print a table of thresholds for this machine (quiet; 15 minutes; ARGS)
	go run ./test/tune $(ARGS)

ab: ## bench ab put to the proof: 20 trials without a change, 20 with one of 10 % (a quiet machine; 10 minutes)
	go run ./test/benchab

files: ## ranks that read batches from one file, by MPI-IO, by package os and by data.Readers, in turns (MPIEXEC; a quiet machine; ARGS)
	@dir=$$(mktemp -d) && trap 'rm -r "$$dir"' EXIT && CGO_ENABLED=1 go build -tags mpi -o "$$dir" ./examples/batchfile && \
		$${MPIEXEC:-mpiexec} -n 4 "$$dir/batchfile" -file "$$dir/batches" -batches 256 -compare $(ARGS)

wire: ## what GOCCL_WIRE=auth and encrypt cost beside plain data, in turns, and a secret while ranks join (a quiet machine; 6 minutes)
	@dir=$$(mktemp -d) && trap 'rm -r "$$dir"' EXIT && go build -o "$$dir" ./bench && for size in 8 64K 8M; do \
		flags="-np 2 -hosts 2 -op sendrecv -b $$size -e $$size"; "$$dir/bench" $$flags | grep -v '^#'; \
		for wire in auth encrypt; do echo "$$size $$wire:"; "$$dir/bench" ab -env GOCCL_WIRE=$$wire - - -- $$flags | tail -1; done; done
	go test -count=1 -run '^$$' -bench 'Handshake|Frame|Record' ./internal/auth

first: ## bench's first rows put to the proof: defaults against -time 15ms, 15 times (a quiet machine; 2 minutes)
	go test -count=1 -v -timeout 10m -run '^TestFirstRows$$' ./bench -args -first 15

tokens: ## how many tokens of Go the source and the tests have; beside those of REV, such as the last release (e2c8510); with ARGS='-most 20', where
	@go run ./test/tokens $(ARGS) $(REV)

lint: static ## all static checks, the documents' links and names, and that generated files are up to date
	go test ./test/imports ./test/docs

static: format vet staticcheck shell workflows generated # lint without its tests, which make test has

format: # gofmt
	@files=$$(gofmt -l .); [ -z "$$files" ] || { echo "gofmt -w these: $$files"; exit 1; }

vet: # go vet of each file on a platform and with tags that compile it; and of the nested modules, as interop tests them
	@$(call platforms,go vet)
	@for m in $(MODULES); do echo "go vet in $$m"; flags=; export CGO_ENABLED=0; \
		if command -v cc >/dev/null; then case $$m in */cu) CGO_ENABLED=1 ;; */gomlx) CGO_ENABLED=1 flags=-race ;; esac; fi; \
		go vet -C $$m $$flags ./... || exit 1; done; go vet ./test/vendor/...

staticcheck: # the same files; pinned in internal/tools
	@bin=$$(mktemp -d) && trap 'rm -rf "$$bin"' EXIT && \
	go build -C internal/tools -o "$$bin/" honnef.co/go/tools/cmd/staticcheck && PATH=$$bin:$$PATH && \
	$(call platforms,staticcheck)

workflows: # actionlint; pinned in internal/tools
	@bin=$$(mktemp -d) && trap 'rm -rf "$$bin"' EXIT && go build -C internal/tools -o "$$bin/" github.com/rhysd/actionlint/cmd/actionlint && "$$bin/actionlint" .github/workflows/*.yml

shell: # shellcheck of the scripts
	@$(call need,shellcheck,shellcheck); shellcheck -x -S warning .ci/run .ci/nightly test/lab/need test/lab/netlab-rsh test/lab/fake-pals/pbs-run \
		$$(git ls-files '*.sh' 2>/dev/null || find . -name '*.sh')

generated: # a copy of the tree, generated anew, is the same
	@copy=$$(mktemp -d) && trap 'rm -rf "$$copy"' EXIT && tar -c --exclude ./.git . | tar -x -C "$$copy" && \
	go generate -C "$$copy" ./... && diff -r --exclude .git . "$$copy" || { echo "run make generate"; exit 1; }

release-check: ## whether the tree is fit to be released as the version that ccl.Version says (a C compiler; git's whole history)
	go test -C internal/tools ./...
	@$(call need,cc,gcc libc6-dev); go run -C internal/tools ./release $(RELEASE)

generate: ## regenerate the kernels (internal/reduce/gen, examples/internal/mat/gen)
	go generate ./...
