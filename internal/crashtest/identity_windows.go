package crashtest

import "io/fs"

// identity is a file's name here: the model is not used on Windows, where names have no sync.
type identity string

func identify(info fs.FileInfo) identity { return identity(info.Name()) }
