# Everything here is plain go; .ci/run is the whole of it.
GO       ?= go
FUZZTIME ?= 30s
BENCH    ?= .
TARGETS  := linux/amd64 linux/arm64 linux/386 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64

.PHONY: all test race fuzz bench lint cover cross

all: test

test:
	$(GO) test ./...

race:
	$(GO) test -race ./blobstor/... ./fstree/... ./blobovnicza/... ./internal/...

# A fuzz run takes one target of one package, so list them and run each for FUZZTIME.
fuzz:
	@$(GO) list ./... | while read -r pkg; do \
		$(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' | while read -r target; do \
			$(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$pkg || exit 1; \
		done || exit 1; \
	done

bench:
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem ./...

lint:
	golangci-lint run ./...

cover:
	$(GO) test -coverpkg ./... -coverprofile cover.out ./...
	$(GO) tool cover -func cover.out | tail -n 1

cross:
	@for t in $(TARGETS); do \
		echo "vet $$t"; GOOS=$${t%/*} GOARCH=$${t#*/} $(GO) vet ./... || exit 1; \
	done
