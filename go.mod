module github.com/granary-store/granary

go 1.26.0

require (
	github.com/FastFilter/xorfilter v0.4.2-0.20260120015552-4e5a4d9df65a
	github.com/mr-tron/base58 v1.3.0
	go.etcd.io/bbolt v1.5.0
	golang.org/x/sys v0.50.0
)

require github.com/klauspost/compress v1.20.4
