package orders

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Generator makes the events of many orders. The same seed makes the same
// events, times apart. It is not safe for concurrent use.
//
// Every order lives the life of an order: placed, items added and removed,
// paid and shipped, or cancelled, and then placed again. Where Erasing says so,
// its document is erased before that. One order in a hundred
// is picked far more often than the others, so that hot sessions and short ones
// are both there.
type Generator struct {
	// Erasing is the share of orders that are erased once they are over; set it
	// before the first event.
	Erasing float64

	rng    *rand.Rand
	orders []order
	hot    int
}

// order is what the generator remembers of one order.
type order struct {
	version int64
	stage   stage
	items   []item
	total   int64
}

type stage int

const (
	absent stage = iota // never placed, or erased
	over                // shipped or cancelled
	open
	paid
)

type item struct {
	sku   string
	price int64
}

const (
	hotShare     = 0.1
	hotPerOrders = 100
	maxItems     = 8
)

// NewGenerator returns a generator over aggregates orders, at least one.
func NewGenerator(seed uint64, aggregates int) *Generator {
	return &Generator{
		rng:    rand.New(rand.NewPCG(seed, 0x6f7264657273)),
		orders: make([]order, aggregates),
		hot:    1 + (aggregates-1)/hotPerOrders,
	}
}

// AggregateID returns the id of the nth order.
func AggregateID(n int) string { return fmt.Sprintf("order-%06d", n) }

// Next returns the next event, stamped with the time, which a database keeps to
// the millisecond.
func (g *Generator) Next(now time.Time) Event {
	n := g.rng.IntN(len(g.orders))
	if g.rng.Float64() < hotShare {
		n = g.rng.IntN(g.hot)
	}
	o := &g.orders[n]
	o.version++
	e := Event{Aggregate: AggregateID(n), Version: o.version, Time: now.UTC().Truncate(time.Millisecond)}
	e.Type, e.Data = g.advance(o)
	return e
}

// advance takes the order one step on.
func (g *Generator) advance(o *order) (string, Data) {
	switch o.stage {
	case absent:
		return g.place(o)
	case over:
		if g.Erasing > 0 && g.rng.Float64() < g.Erasing {
			o.stage = absent
			return Erased, Data{"request": fmt.Sprintf("R%08d", g.rng.IntN(100_000_000))}
		}
		return g.place(o)
	case paid:
		o.stage = over
		return Shipped, Data{
			"carrier":  pick(g.rng, "north", "river", "swift"),
			"tracking": fmt.Sprintf("T%08d", g.rng.IntN(100_000_000)),
		}
	case open:
	}
	switch roll := g.rng.Float64(); {
	case roll < 0.5 && len(o.items) < maxItems:
		return g.add(o)
	case roll < 0.65 && len(o.items) > 0:
		return g.remove(o)
	case roll < 0.9 && len(o.items) > 0:
		o.stage = paid
		return Paid, Data{"method": pick(g.rng, "card", "invoice", "transfer"), "amount": o.total}
	case roll >= 0.95:
		o.stage = over
		return Cancelled, Data{"reason": pick(g.rng, "changed mind", "too late", "found elsewhere")}
	}
	return g.add(o)
}

func (g *Generator) place(o *order) (string, Data) {
	o.stage, o.items, o.total = open, o.items[:0], 0
	return Placed, Data{
		"customer": fmt.Sprintf("customer-%04d", g.rng.IntN(2000)),
		"channel":  pick(g.rng, "web", "shop", "phone"),
	}
}

func (g *Generator) add(o *order) (string, Data) {
	if len(o.items) == maxItems {
		return g.remove(o)
	}
	it := item{sku: fmt.Sprintf("sku-%03d", g.rng.IntN(300)), price: 100 + g.rng.Int64N(20_000)}
	o.items = append(o.items, it)
	o.total += it.price
	return Added, Data{"sku": it.sku, "price": it.price}
}

func (g *Generator) remove(o *order) (string, Data) {
	last := len(o.items) - 1
	i := g.rng.IntN(len(o.items))
	it := o.items[i]
	o.items[i] = o.items[last]
	o.items = o.items[:last]
	o.total -= it.price
	return Removed, Data{"sku": it.sku, "price": it.price}
}

func pick(rng *rand.Rand, choices ...string) string { return choices[rng.IntN(len(choices))] }
