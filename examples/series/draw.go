package main

import (
	"errors"
	"image/color"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	canvas "gonum.org/v1/plot/vg/draw"
)

const (
	width  = 24 * vg.Centimeter
	height = 6 * vg.Centimeter // of each plot
)

// draw writes a picture with one plot below the other. The end of its name says of what kind it is.
func draw(out string, lines map[string]*line) (err error) {
	names := slices.Sorted(maps.Keys(lines))
	plots := make([][]*plot.Plot, len(names))
	for i, name := range names {
		p, err := graph(name, lines[name])
		if err != nil {
			return err
		}
		plots[i] = []*plot.Plot{p}
	}
	c, err := canvas.NewFormattedCanvas(width, height*vg.Length(len(plots)), strings.TrimPrefix(filepath.Ext(out), "."))
	if err != nil {
		return err
	}
	tiles := canvas.Tiles{Rows: len(plots), Cols: 1, PadY: vg.Centimeter / 2}
	for i, row := range plot.Align(plots, tiles, canvas.New(c)) {
		plots[i][0].Draw(row[0])
	}
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	_, err = c.WriteTo(f)
	return errors.Join(err, f.Close())
}

// graph plots one series over the seconds since its beginning. Where it has no value, it has a gap.
func graph(name string, l *line) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = name
	if name == "latency" {
		p.Y.Label.Text = "us"
	}
	p.X.Label.Text = "s"
	var run plotter.XYs
	flush := func() error {
		if len(run) == 0 {
			return nil
		}
		drawn, err := plotter.NewLine(run)
		if err != nil {
			return err
		}
		drawn.Color = color.RGBA{R: 0x1f, G: 0x5f, B: 0x8b, A: 0xff}
		p.Add(drawn)
		run = nil
		return nil
	}
	for _, point := range l.points {
		if math.IsNaN(point.V) || math.IsInf(point.V, 0) {
			if err := flush(); err != nil {
				return nil, err
			}
			continue
		}
		run = append(run, plotter.XY{X: float64(point.T-l.points[0].T) / 1e6, Y: point.V})
	}
	return p, flush()
}
