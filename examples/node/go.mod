module example.com/node

go 1.26.0

require github.com/granary-store/granary v0.0.0

require (
	github.com/FastFilter/xorfilter v0.4.2-0.20260120015552-4e5a4d9df65a // indirect
	github.com/klauspost/compress v1.20.4 // indirect
	github.com/mr-tron/base58 v1.3.0 // indirect
	go.etcd.io/bbolt v1.5.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
)

replace github.com/granary-store/granary => ../..
