# Shorthand for plain go commands and for parts of .ci/run, which is the whole of the checks.
GO    ?= go
BENCH ?= .
export FUZZTIME ?= 200000x

.PHONY: test race fuzz bench lint cover cross

test:
	$(GO) test ./...

race fuzz cross:
	.ci/run $@

bench:
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem ./...

lint:
	golangci-lint run ./...

cover:
	$(GO) test -coverpkg ./... -coverprofile cover.prof ./...
	$(GO) tool cover -func cover.prof | tail -n 1
