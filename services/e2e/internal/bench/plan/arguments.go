package plan

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"changerelay/services/e2e/internal/harness/commandline"
)

// quantity is a number with an exponent or a unit: 5000, 1e6, 2KB.
type quantity float64

func (q *quantity) String() string { return strconv.FormatFloat(float64(*q), 'g', -1, 64) }

func (q *quantity) Set(text string) error {
	factor := 1.0
	for _, unit := range []struct {
		name string
		of   float64
	}{{"KB", 1e3}, {"MB", 1e6}, {"B", 1}, {"k", 1e3}, {"M", 1e6}} {
		if before, found := strings.CutSuffix(text, unit.name); found {
			text, factor = before, unit.of
			break
		}
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return errors.New("want a number such as 5000, 1e6 or 2KB")
	}
	*q = quantity(v * factor)
	return nil
}

// Parse reads the command line. Every problem is reported at once.
func Parse(args []string, usage io.Writer) (Load, error) {
	rate, aggregates, size, subscriptions, sessions := quantity(1000), quantity(1e5), quantity(2e3), quantity(1), quantity(64)
	l := Load{}
	flags := flag.NewFlagSet("plan", flag.ContinueOnError)
	flags.Var(&rate, "rate", "`events` written a second, at the peak")
	flags.Var(&aggregates, "aggregates", "`number` of aggregates that events come of")
	flags.Var(&size, "size", "`size` of an event's document, as 2KB")
	flags.Var(&subscriptions, "subscriptions", "`number` of subscriptions of the topic, each with one rule")
	flags.Var(&sessions, "sessions", "MAX_SESSIONS of a projector, a `number`")
	flags.DurationVar(&l.RoundTrip, "rtt", 2*time.Millisecond, "round trip to MongoDB and Service Bus")
	flags.DurationVar(&l.Outage, "outage", 24*time.Hour, "how long publishers, or projectors, may be down")
	err := commandline.Parse(flags, args, usage)
	if err != nil {
		return l, err
	}
	l.Rate, l.Aggregates, l.Size, l.Subscriptions, l.Sessions = float64(rate), float64(aggregates), float64(size), float64(subscriptions), float64(sessions)
	var errs []error
	if flags.NArg() > 0 {
		errs = append(errs, fmt.Errorf("there is no argument %q", flags.Arg(0)))
	}
	for _, given := range []struct {
		name    string
		v, most float64
	}{
		{"rate", l.Rate, 1e7},
		{"aggregates", l.Aggregates, 1e12},
		{"size", l.Size, 16 << 20}, // that of a document in MongoDB
		{"subscriptions", l.Subscriptions, mostSubscriptions.value},
		{"sessions", l.Sessions, 4096}, // MAX_SESSIONS
		{"outage", l.Outage.Hours(), 10 * 365 * 24},
		{"rtt", l.RoundTrip.Minutes(), 1},
	} {
		switch {
		case given.v > given.most:
			errs = append(errs, fmt.Errorf("--%s is too large to plan for", given.name))
		case given.v <= 0 && given.name != "rtt":
			errs = append(errs, fmt.Errorf("--%s is not above 0", given.name))
		}
	}
	if l.RoundTrip < 0 {
		errs = append(errs, fmt.Errorf("--rtt is %v, below 0", l.RoundTrip))
	}
	return l, errors.Join(errs...)
}

// Write prints what a load takes, with where each figure is from.
func Write(out io.Writer, l Load) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s events a second of %s aggregates, %s each, %v away, %s subscriptions\n",
		number(l.Rate), number(l.Aggregates), size(l.Size), l.RoundTrip, number(l.Subscriptions))
	for _, line := range Of(l) {
		fmt.Fprintf(&b, "\n%-28s %s\n    %s\n", line.Name, line.Value, line.Why)
		for _, source := range line.Sources {
			fmt.Fprintf(&b, "    · %s\n", source)
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}
