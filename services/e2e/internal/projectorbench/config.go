package projectorbench

import (
	"flag"
	"fmt"
	"io"
	"strings"
	"time"
)

// Config says what is measured.
type Config struct {
	// Shapes are what the backlog looks like.
	Shapes []Shape
	// Latencies are added to every round trip, one run for each.
	Latencies []time.Duration
	// PlainMessages bounds the plain loop, whose rate does not depend on it.
	PlainMessages int
	// Bin has the binaries; empty builds them.
	Bin string
	// Timeout bounds the whole run.
	Timeout time.Duration
}

// Shape is a backlog of sessions of the same length.
type Shape struct {
	Name               string
	Sessions, Messages int // messages in each session
}

func (s Shape) total() int { return s.Sessions * s.Messages }

// Parse reads the arguments of `bench projector`.
func Parse(args []string, stderr io.Writer) (Config, error) {
	var c Config
	var latencies string
	short := Shape{Name: "short sessions", Messages: 10}
	hot := Shape{Name: "hot sessions", Sessions: 64}
	flags := flag.NewFlagSet("bench projector", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&short.Sessions, "sessions", 50000, "short sessions, of 10 messages each; 0 leaves the shape out")
	flags.IntVar(&hot.Messages, "hot-messages", 10000, "messages of each of 64 hot sessions; 0 leaves the shape out")
	flags.StringVar(&latencies, "latency", "0,5ms", "latencies added to each round trip")
	flags.IntVar(&c.PlainMessages, "plain-messages", 500, "most messages of the plain loop")
	flags.StringVar(&c.Bin, "bin", "", "directory with the binaries; builds them when not set")
	flags.DurationVar(&c.Timeout, "timeout", time.Hour, "longest time for all")
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	for text := range strings.SplitSeq(latencies, ",") {
		latency, err := time.ParseDuration(strings.TrimSpace(text))
		if err != nil || latency < 0 {
			return c, fmt.Errorf("--latency: %q is not a duration", text)
		}
		c.Latencies = append(c.Latencies, latency)
	}
	for _, shape := range []Shape{short, hot} {
		if shape.total() > 0 {
			c.Shapes = append(c.Shapes, shape)
		}
	}
	if len(c.Shapes) == 0 || c.PlainMessages < 1 || flags.NArg() > 0 {
		return c, fmt.Errorf("bench projector: nothing to measure, or arguments that are not understood: %q", flags.Args())
	}
	return c, nil
}
