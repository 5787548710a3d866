package mongostate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/publisher/internal/checkpoint"
)

// ErrScope is wrapped by what refuses to work on a stream that is not as it was
// said to be.
var ErrScope = errors.New("the stream is another one than the settings say")

// Scope is what the state database has of one stream, whatever number of
// partitions it has. What is retired is not in it.
type Scope struct {
	Whole string
	// Records and Checkpoints are by the names of checkpoints.
	Records     map[string]checkpoint.Record
	Checkpoints map[string]checkpoint.Checkpoint
	// Retired are the names of which a record or a checkpoint is: of both, but for a
	// repartition that did not end.
	Retired map[string]bool
	// Highest is the highest term of all of them, retired or not.
	Highest int64
	// Holders are the live leases of the stream.
	Holders []Holder
}

// Holder is who holds a lease.
type Holder struct {
	Lease string `bson:"_id"`
	ID    string `bson:"leaderId"`
	// Stream is the name of the checkpoint that the lease is for.
	Stream string `bson:"stream"`
	// Halt is why the holder waits for an operator; empty while it does not.
	Halt string `bson:"halt"`
}

// Scope finds what there is of a stream.
func (d *Database) Scope(ctx context.Context, whole, lease string) (Scope, error) {
	s := Scope{Whole: whole, Records: map[string]checkpoint.Record{}, Checkpoints: map[string]checkpoint.Checkpoint{}, Retired: map[string]bool{}}
	var records []streamDocument
	if err := all(ctx, d, streams, bson.D{{Key: "stream", Value: whole}}, &records); err != nil {
		return s, fmt.Errorf("look for the records of %q: %w", whole, err)
	}
	for _, document := range records {
		s.Highest = max(s.Highest, document.Term)
		if document.Retired {
			s.Retired[document.Stream] = true
		} else {
			s.Records[document.Stream] = document.record()
		}
	}
	var documents []checkpointDocument
	if err := all(ctx, d, checkpoints, bson.D{anyPartition("_id", whole)}, &documents); err != nil {
		return s, fmt.Errorf("look for checkpoints of %q: %w", whole, err)
	}
	for _, document := range documents {
		s.Highest = max(s.Highest, document.Term)
		if document.Retired {
			s.Retired[document.Stream] = true
		} else {
			s.Checkpoints[document.Stream] = document.checkpoint()
		}
	}
	if err := all(ctx, d, leases, bson.D{
		{Key: "$or", Value: bson.A{bson.D{anyPartition("_id", lease)}, bson.D{anyPartition("stream", whole)}}}, live(),
	}, &s.Holders); err != nil {
		return s, fmt.Errorf("look for live leases of %q: %w", whole, err)
	}
	return s, nil
}

// anyPartition is the filter of a name, or that of a partition of it.
func anyPartition(field, name string) bson.E {
	return bson.E{Key: field, Value: bson.Regex{Pattern: "^" + regexp.QuoteMeta(name) + `(-[0-9]+of[0-9]+)?$`}}
}

func all[T any](ctx context.Context, d *Database, from string, filter bson.D, found *[]T) error {
	cursor, err := d.db.Collection(from).Find(ctx, filter)
	if err != nil {
		return err
	}
	return cursor.All(ctx, found)
}

// Partitions are the numbers of partitions of which there is something.
func (s Scope) Partitions() []int {
	numbers := map[int]bool{}
	for _, name := range s.Names() {
		numbers[s.partitionsOf(name)] = true
	}
	return slices.Sorted(maps.Keys(numbers))
}

// Names are those of all checkpoints of which there is something.
func (s Scope) Names() []string {
	names := map[string]bool{}
	for name := range s.Records {
		names[name] = true
	}
	for name := range s.Checkpoints {
		names[name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

func (s Scope) partitionsOf(name string) int {
	_, after, found := strings.Cut(strings.TrimPrefix(name, s.Whole), "of")
	if number, err := strconv.Atoi(after); found && err == nil {
		return number
	}
	return 1
}

// Of are the names of one number of partitions of which there is something.
func (s Scope) Of(partitions int) []string {
	return slices.DeleteFunc(s.Names(), func(name string) bool { return s.partitionsOf(name) != partitions })
}

// Said is what the settings of a process say of a stream.
type Said struct {
	Partitions int
	Lease      string
	// Settings are compared with those of the record; nil are taken as they are.
	Settings checkpoint.Settings
}

// Known returns an error unless there is something of the stream.
func (s Scope) Known() error {
	if len(s.Partitions()) > 0 {
		return nil
	}
	return fmt.Errorf("%w: nothing is known of a stream %q; look with publisher status at STREAM_NAME and STATE_DATABASE", ErrScope, s.Whole)
}

// Check returns an error unless the stream is there, and is the one that the
// settings say: with this number of partitions and no other, under this lease,
// from this source and to this topic. Every command that changes something of a
// stream calls it first.
func (s Scope) Check(said Said) error {
	partitions, lease := said.Partitions, said.Lease
	found := s.Partitions()
	switch {
	case len(found) == 0:
		return s.Known()
	case !slices.Equal(found, []int{partitions}):
		return s.mismatch(partitions)
	}
	if err := s.fits(said); err != nil {
		return err
	}
	names, ours := PartitionNames(s.Whole, partitions), PartitionNames(lease, partitions)
	for _, holder := range s.Holders {
		if slices.Contains(names, holder.Stream) && !slices.Contains(ours, holder.Lease) {
			return fmt.Errorf("%w: stream %q is led by %q under the lease %q, and LEASE_NAME is %s", ErrScope, holder.Stream, holder.ID, holder.Lease, lease)
		}
		if !slices.Contains(names, holder.Stream) && slices.Contains(ours, holder.Lease) {
			return fmt.Errorf("%w: the lease %q is held by %q for the stream %q, not for %q", ErrScope, holder.Lease, holder.ID, holder.Stream, s.Whole)
		}
	}
	return nil
}

// fits compares the records with the settings.
func (s Scope) fits(said Said) error {
	for _, name := range slices.Sorted(maps.Keys(s.Records)) {
		record := s.Records[name]
		if record.Lease != said.Lease {
			return fmt.Errorf("%w: stream %q is led under LEASE_NAME=%s, not %s", ErrScope, s.Whole, record.Lease, said.Lease)
		}
		if others := record.Changed(said.Settings, checkpoint.Another); len(others) > 0 {
			return fmt.Errorf("%w: of stream %q %s; correct the settings, or take them over with publisher checkpoint accept --why TEXT",
				ErrScope, s.Whole, strings.Join(others, ", "))
		}
	}
	return nil
}

func (s Scope) mismatch(partitions int) error {
	found := s.Partitions()
	switch {
	case len(found) == 1:
		return fmt.Errorf("%w: stream %q has %d partitions, and PARTITIONS is %d", ErrScope, s.Whole, found[0], partitions)
	default:
		return fmt.Errorf("%w: stream %q has checkpoints of several numbers of partitions, %q; "+
			"say which of them are right with publisher repartition --from %s", ErrScope, s.Whole, s.Names(), s.rightText())
	}
}

// Halted reports whether a partition waits for an operator.
func (s Scope) Halted(name string) bool {
	return s.Records[name].Halt != "" || slices.ContainsFunc(s.Holders, func(h Holder) bool { return h.Stream == name && h.Halt != "" })
}

// Held returns an error that names who holds a lease of the stream, unless all
// who do wait for an operator, or lead partitions of it that are left alone.
func (s Scope) Held(leftAlone []string) error {
	for _, holder := range s.Holders {
		if holder.Halt == "" && s.Records[holder.Stream].Halt == "" && !slices.Contains(leftAlone, holder.Stream) {
			return fmt.Errorf("lease %q is held by %q: stop all publishers of the stream first", holder.Lease, holder.ID)
		}
	}
	return nil
}
