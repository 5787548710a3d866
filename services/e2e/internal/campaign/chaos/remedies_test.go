package chaos

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/check/witness"
	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/cluster/clustertest"
)

// parking answers the commands of a projector that has parked versions 1, 2 and 4 of every
// aggregate, and writes down what it is asked for.
const parking = `#!/bin/sh
[ "$3" != -- ] || set -- "$1" "$2" "$4" "$5"
echo "$2 $3 $4" >> "$0.asked"
case "$2" in
list) for v in 1 2 4; do echo "{\"event_id\":\"e$v\",\"version\":$v,\"failed\":false}"; done;;
discard) echo "{\"event_id\":\"$4\",\"version\":${4#e}}";;
esac
`

// What came from before the beginning of its aggregate is given up, and nothing else is; a
// halt that was deleted and put back, without its reason, is redriven.
func TestGiveUpEarly_WhatCameFromBeforeTheBeginningAlone(t *testing.T) {
	t.Parallel()
	servers, names := clustertest.Sandbox(t), cluster.DefaultNames()
	w, err := witness.Open(t.Context(), servers, names, witness.Orders)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close(context.Background()) })
	binary := filepath.Join(t.TempDir(), "projector")
	if err := os.WriteFile(binary, []byte(parking), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	c := &campaign{
		out: io.Discard, witness: w, done: make(map[string]int), open: make(map[*odd]bool), leftOut: make(map[string]witness.LeftOut),
		cluster: cluster.New(cluster.Config{
			Binaries: cluster.Binaries{Projector: binary}, Dir: t.TempDir(), Backend: &servers, Names: names, Projectors: 1,
		}),
	}
	if err := c.cluster.LayOut(); err != nil {
		t.Fatal(err)
	}
	if c.putAllRight(t.Context()) {
		t.Error("with no halts: got something put right, want nothing")
	}
	for id, reason := range map[string]string{
		"early": `the read model did not begin with the aggregate: projection "orders" began aggregate "early" at sequence 0000000000000000003, and this event, of sequence 0000000000000000001, comes from before and was never applied to it.`,
		"again": "messages were parked and their halt was gone: it is put back",
		"other": `projection "orders", event type "ItemAdded": inc "total": the value is of type string, not a number`,
	} {
		if _, err := w.ReadModel().Collection(halts).InsertOne(t.Context(), bson.D{{Key: "_id", Value: id}, {Key: "reason", Value: reason}}); err != nil {
			t.Fatal(err)
		}
	}
	if !c.putAllRight(t.Context()) {
		t.Error("got nothing put right, want an aggregate")
	}
	asked, err := os.ReadFile(binary + ".asked")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Fields(string(asked)), strings.Fields("list early discard early e1 discard early e2 redrive early redrive again"); !slices.Equal(got, want) {
		t.Errorf("got commands %q, want %q", got, want)
	}
	if len(c.faults) > 0 || len(c.remedies) != 2 {
		t.Errorf("got %v as faults, and %v as remedies, want two remedies and nothing else", c.faults, c.remedies)
	}
	given := slices.SortedFunc(maps.Keys(c.leftOut[ownGroup]), func(a, b validate.Event) int { return int(a.Version - b.Version) })
	if got := fmt.Sprint(given); got != "[{early 1} {early 2}]" {
		t.Errorf("given up: got %s, want versions 1 and 2", got)
	}
}
