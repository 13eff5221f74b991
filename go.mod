module github.com/granary-store/granary

go 1.26.0

require github.com/mr-tron/base58 v1.3.0

require golang.org/x/sys v0.50.0 // indirect
