module github.com/granary-store/granary

go 1.26.0

require (
	github.com/FastFilter/xorfilter v0.4.2-0.20260120015552-4e5a4d9df65a
	github.com/klauspost/compress v1.20.4
	github.com/mr-tron/base58 v1.3.0
	github.com/nspcc-dev/neo-go v0.121.0
	go.etcd.io/bbolt v1.5.0
	golang.org/x/sys v0.50.0
)

require (
	github.com/decred/dcrd/crypto/ripemd160 v1.0.2 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)
