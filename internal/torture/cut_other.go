//go:build !linux

package torture

import "errors"

func cutPower(string, bool) error { return errors.ErrUnsupported }
