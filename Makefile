# Shorthand for plain go commands and for parts of .ci/run, which is the whole of the checks.
GO    ?= go
BENCH ?= .
export FUZZTIME ?= 200000x

.PHONY: test race fuzz bench lint cover cross reliability torture

test:
	$(GO) test ./...

race fuzz cross reliability:
	.ci/run $@

# Tier B of RELIABILITY.md, which gets the table of what was done: some hours, as root.
torture:
	GRANARY_TORTURE=B GRANARY_TORTURE_TABLE=$(CURDIR)/RELIABILITY.md $(GO) test -count=1 -v -timeout 12h ./internal/torture

bench:
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem ./...

lint:
	golangci-lint run ./...

cover:
	$(GO) test -coverpkg ./... -coverprofile cover.prof ./...
	$(GO) tool cover -func cover.prof | tail -n 1
