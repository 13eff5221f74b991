//go:build !linux || generic

package durable

import "errors"

func (d *Dir) newTemp(name string) (*Temp, error) { return d.namedTemp(name) }

func (t *Temp) linkUnnamed(*Dir, string) error { return errors.ErrUnsupported }
