package suite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"changerelay/services/e2e/internal/check/readmodel"
	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/harness/orders"
)

// plainSize is about what a generated event takes as a document.
const plainSize = 200

// generated draws the flow's events, which are the same each time.
func (f *flow) generated() func() (orders.Event, bool) {
	g := orders.NewGenerator(seed, f.aggregates)
	rng := rand.New(rand.NewPCG(seed, 0x66696c6c))
	n := 0
	return func() (orders.Event, bool) {
		e := g.Next(time.Now())
		size := f.size
		if len(f.sizes) > 0 {
			size = f.sizes[n%len(f.sizes)]
		}
		n++
		if f.filled() {
			e.Data.(orders.Data)["fill"] = text(rng, max(size-plainSize, 0))
		}
		return e, true
	}
}

// text returns letters and digits at random, which compress to three quarters at
// best, much as real payloads that were compressed or are random already.
func text(rng *rand.Rand, n int) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	out := make([]byte, n)
	for i := range out {
		out[i] = letters[rng.Uint64()%uint64(len(letters))]
	}
	return string(out)
}

// compare recomputes the read model from the same events, and returns what
// differs.
func (f *flow) compare(ctx context.Context) error {
	n := f.cluster.Names()
	if f.filled() {
		return f.compareLatest(ctx)
	}
	model, err := readmodel.Read(ctx, f.client, n.ReadModelDatabase, "orders")
	if err != nil {
		return err
	}
	want := orders.Model{}
	next := f.generated()
	for range f.events {
		e, _ := next()
		want.Apply(e)
	}
	expected := make(map[string]map[string]any, len(want))
	for id, doc := range want {
		orders.SortSets(doc)
		expected[id] = doc
	}
	for _, doc := range model.Documents {
		orders.SortSets(doc)
	}
	return none(validate.Differences(expected, model.Documents))
}

// compareLatest compares the default projection's documents.
func (f *flow) compareLatest(ctx context.Context) error {
	model, err := readmodel.Read(ctx, f.client, f.cluster.Names().ReadModelDatabase, "latest")
	if err != nil {
		return err
	}
	versions, latest := map[string]int64{}, orders.Latest{}
	next := f.generated()
	for range f.events {
		e, _ := next()
		latest.Apply(e)
		versions[e.Aggregate] = e.Version
	}
	var wrong validate.Findings
	for id, version := range versions {
		got, _ := model.Documents[id]["data"].(map[string]any)
		want, _ := latest[id].(orders.Data)
		if model.Positions[id].Version != version || got["fill"] != want["fill"] {
			wrong.Add("%s: got version %d, want version %d with its data", id, model.Positions[id].Version, version)
		}
	}
	return none(wrong)
}

// none returns an error for findings.
func none(f validate.Findings) error {
	if f.Count == 0 {
		return nil
	}
	return errors.Join(errors.New("the read model is not what the events make"), fmt.Errorf("%d differences, such as %q", f.Count, f.Samples))
}
