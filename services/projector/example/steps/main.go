// Command steps is a projector with a projection in Go that end-to-end tests judge.
package main

import (
	"fmt"
	"hash/crc32"
	"os"

	"changerelay/services/projector"
)

// A collection belongs to one group of projectors, so one with a name has no steps.
func main() {
	if os.Getenv("READMODEL_GROUP") != "" {
		projector.Main()
	}
	projector.Main(projector.Projection{Name: "steps", Collection: "steps", Revision: "1", Shared: true, Decide: decide})
}

// decide keeps two documents for each event, which no declared projection can: one of
// the aggregate and the event's type, and one of the aggregate and a third of its versions.
// The sum of their ids tells which events these are, also where they have no version.
func decide(e *projector.Event) ([]projector.Write, error) {
	write := func(part any) projector.Write {
		return projector.Update(fmt.Sprintf("%s/%v", e.AggregateID, part), projector.Inc("events", int64(1)),
			projector.Inc("sum", e.Version), projector.Inc("ids", int64(crc32.ChecksumIEEE([]byte(e.ID)))), projector.Set("latest", e.Version))
	}
	return []projector.Write{write(e.Type), write(e.Version % 3)}, nil
}
