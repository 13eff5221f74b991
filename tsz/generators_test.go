package tsz

// generator is a series as the benchmarks of this lineage know it: the value of point i, at time i.
type generator struct {
	name  string
	value func(i int) float64
}

var generators = []generator{
	{"MonotonicIncrease", func(i int) float64 { return float64(i) + 123.45 }},
	{"MonotonicIncreaseWithResets", func(i int) float64 {
		if i%10 < 2 {
			return float64(i % 10)
		}
		return float64(i) + 123.45
	}},
	{"Sawtooth", func(i int) float64 { return tooth(i%2 == 1, i) }},
	{"SawtoothWithFlats", func(i int) float64 { return tooth(i%2 == 1 || i%100 == 0, i) }},
	{"Steps", func(i int) float64 { return tooth(i/100%2 == 1, i) }},
	{"RealWorldCPU", func(i int) float64 { return cpu[i%len(cpu)] }},
}

func tooth(up bool, i int) float64 {
	s := -1.0
	if up {
		s = 1
	}
	return float64(s*123.45) + float64(i)/1000
}

// cpu has the shape of a processor at work: 55 of 61 values near 94.7, six dips, one decimal.
var cpu = [61]float64{
	94.6, 95.1, 86.2, 94.2, 95.4, 94.9, 93.8, 94.7, 95.6, 94.4, 94.4, 95.0, 93.9, 95.2, 94.7, 83.8,
	94.1, 95.3, 94.8, 93.5, 95.7, 89.6, 72.8, 72.1, 86.5, 94.5, 95.1, 94.7, 93.9, 95.5, 94.3, 94.3,
	95.8, 94.0, 94.9, 96.6, 93.4, 94.8, 95.2, 94.2, 92.0, 94.6, 95.0, 96.0, 93.7, 94.5, 95.3, 94.9,
	94.9, 93.3, 95.4, 94.1, 96.2, 94.7, 93.6, 95.0, 94.4, 95.9, 93.0, 94.8, 92.7,
}

// points returns the times and values of a generator's first n points.
func (g generator) points(n int) (ts []int64, vs []float64) {
	for i := 1; i <= n; i++ {
		ts, vs = append(ts, int64(i)), append(vs, g.value(i))
	}
	return ts, vs
}
