package chaos

import (
	"context"
	cryptorand "crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/check/witness"
	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/orders"
	"changerelay/services/e2e/internal/harness/poll"
)

// Collections of what is set aside.
const (
	parkedChanges  = "parked_changes"
	parkedMessages = "parked_messages"
	halts          = "halted_aggregates"
)

// wrongVersion is the event of an odd order with which something is wrong.
const wrongVersion = 2

// odd is an order that an operator has to deal with: its second event cannot be sent,
// or cannot be applied. It is open until that is dealt with.
type odd struct {
	aggregate string
	written   int64
	unsent    bool // the publishers park its second event, and not the projectors
}

// asideTime bounds how long an operator waits for the relay to set an event aside.
const asideTime = 10 * time.Second

// writeOdd writes an odd order of four events.
func (c *campaign) writeOdd(ctx context.Context, unsent bool) (*odd, error) {
	c.mu.Lock()
	o := &odd{aggregate: fmt.Sprintf("operator-%d", len(c.odd)+1), unsent: unsent}
	c.odd = append(c.odd, o)
	c.open[o] = true
	c.mu.Unlock()
	return o, c.goOn(ctx, o, 4)
}

// changeOf is the filter of what the publishers have parked of an order.
func (c *campaign) changeOf(o *odd) bson.D {
	if c.cfg.mode().Documents != nil {
		return bson.D{{Key: "change.documentKey._id", Value: o.aggregate}}
	}
	return bson.D{{Key: "change.fullDocument._id", Value: orders.Event{Aggregate: o.aggregate, Version: wrongVersion}.ID()}}
}

// goOn writes further events of an odd order.
func (c *campaign) goOn(ctx context.Context, o *odd, n int) error {
	var events []orders.Event
	for range n {
		o.written++
		e := orders.Event{Aggregate: o.aggregate, Version: o.written, Type: orders.Added, Time: c.began.UTC().Truncate(time.Millisecond), Data: orders.Data{"sku": fmt.Sprint(o.written), "price": o.written}}
		switch {
		case o.written == 1:
			e.Type, e.Data = orders.Placed, orders.Data{"customer": "operator", "channel": "chaos"}
		case o.written == wrongVersion && o.unsent && c.cfg.mode().Documents != nil:
			e.Data = orders.Data{"sku": "x", "note": tooLarge()}
		case o.written == wrongVersion && o.unsent:
			e.Time = time.Date(10_500, 1, 1, 0, 0, 0, 0, time.UTC) // no event's time
		case o.written == wrongVersion:
			e.Data = orders.Data{"sku": "x", "price": "dear"} // no price to add
		}
		events = append(events, e)
	}
	if err := c.odder.Insert(ctx, events); err != nil {
		return err
	}
	c.witness.Ledger.Wrote(events)
	return nil
}

// tooLarge is a text that no message can hold, packed or not.
func tooLarge() string {
	var text strings.Builder
	for text.Len() < 1<<20 {
		text.WriteString(cryptorand.Text())
	}
	return text.String()
}

// isClosed notes that an order is dealt with.
func (c *campaign) isClosed(o *odd) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, o)
}

// opened are the orders that are not dealt with yet.
func (c *campaign) opened() []*odd {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.SortedFunc(maps.Keys(c.open), func(a, b *odd) int { return strings.Compare(a.aggregate, b.aggregate) })
}

// wrong notes a command that has not done what it promises.
func (c *campaign) wrong(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken.Add(format, args...)
	c.say("WRONG: "+format, args...)
}

// refused is the exit status of a command that was refused or has failed.
const refused = 1

// mustRefuse runs a command that must be refused, and leave what look returns as it is.
func (c *campaign) mustRefuse(ctx context.Context, n *cluster.Node, env []string, look func(context.Context) (string, error), args ...string) error {
	before, err := look(ctx)
	if err != nil {
		return err
	}
	output, failed := n.CommandIn(ctx, env, args...)
	what := strings.Join(slices.Concat(env, args), " ")
	if exit, ok := errors.AsType[*exec.ExitError](failed); !ok || exit.ExitCode() != refused {
		c.wrong("%s: got %v, want status %d: %s", what, failed, refused, firstLine(output))
	}
	after, err := look(ctx)
	if err == nil && after != before {
		c.wrong("%s was refused, and has changed %s to %s", what, before, after)
	}
	return err
}

// aside is what a command prints of an event that is set aside.
type aside struct {
	ID      string `json:"id"`       // of a change
	EventID string `json:"event_id"` // of a message
	Version int64  `json:"version"`
	Failed  bool   `json:"failed"`
}

// asidesIn are those that a command has printed, one a line. An event without a version
// has the one that the witness counts it as.
func (c *campaign) asidesIn(output string) []aside {
	var all []aside
	for line := range strings.Lines(output) {
		var a aside
		if json.Unmarshal([]byte(line), &a) != nil || a.ID+a.EventID == "" {
			continue
		}
		if a.Version == 0 {
			a.Version = c.witness.VersionOf(a.EventID)
		}
		all = append(all, a)
	}
	return all
}

// awaitAside waits until three messages of an order are parked; false where they are
// not in time, as the publishers are halted, say.
func (c *campaign) awaitAside(ctx context.Context, o *odd) bool {
	ctx, cancel := context.WithTimeout(ctx, asideTime)
	defer cancel()
	in, filter, want := c.witness.ReadModel().Collection(parkedMessages), bson.D{{Key: "_id.aggregateId", Value: o.aggregate}}, int64(3)
	if o.unsent {
		in, filter, want = c.witness.State().Collection(parkedChanges), c.changeOf(o), 1
	}
	err := poll.Until(ctx, "an order to be set aside", func(ctx context.Context) (bool, string) {
		n, err := in.CountDocuments(ctx, filter)
		return n >= want, fmt.Sprintf("%d parked, error %v", n, err)
	})
	if err == nil && o.unsent {
		c.giveUpParked(ctx, o)
	}
	return err == nil
}

// giveUpParked notes the parked change of an order that cannot be sent: it is discarded
// in the end, unless it goes when the state database is put back.
func (c *campaign) giveUpParked(ctx context.Context, o *odd) {
	var parked struct {
		ID string `bson:"_id"`
	}
	if err := c.witness.State().Collection(parkedChanges).FindOne(ctx, c.changeOf(o)).Decode(&parked); err == nil {
		c.giveUpChange(o, parked.ID)
	}
}

// withMessages is what operators do with parked messages: of an odd order, which goes
// on meanwhile, while nobody else does anything with what is parked. do says what it
// has done. What is still parked then is dealt with as the documentation says.
func withMessages(do func(ctx context.Context, c *campaign, n *cluster.Node, o *odd) (string, error)) act {
	return func(ctx context.Context, c *campaign, rng *rand.Rand) (string, func(context.Context) error, error) {
		release, free := c.take("parked")
		if !free {
			return "", nil, errNobody
		}
		defer release()
		n := projector(ctx, c, rng)
		o, err := c.writeOdd(ctx, false)
		if err != nil {
			return "", nil, err
		}
		if !c.awaitAside(ctx, o) {
			return "", nil, errNobody // it is dealt with at the end
		}
		what, err := do(ctx, c, n, o)
		if err == nil {
			err = c.goOn(ctx, o, 1)
		}
		if err != nil {
			return "", nil, err
		}
		what += " of " + o.aggregate
		if !c.putRight(ctx, n, o) {
			what += ", which stays halted for now"
		}
		return what, nil, nil
	}
}

// discardOne discards the event that cannot be applied.
func discardOne(ctx context.Context, c *campaign, n *cluster.Node, o *odd) (string, error) {
	for _, a := range c.messages(ctx, n, o) {
		if a.Version == wrongVersion {
			c.discard(ctx, n, o, a.EventID)
		}
	}
	return "the parked message that cannot be applied is discarded", nil
}

// discardAll discards all that is parked of an order, while more comes.
func discardAll(ctx context.Context, c *campaign, n *cluster.Node, o *odd) (string, error) {
	err := c.goOn(ctx, o, 2)
	c.discard(ctx, n, o, allParked)
	return "all parked messages are discarded", err
}

// allParked is every message that is parked of an order.
const allParked = "--all"

// discard gives up one event of an order, or all that is parked. What it prints it
// has removed.
func (c *campaign) discard(ctx context.Context, n *cluster.Node, o *odd, event string) {
	args := []string{"parked", "discard", "--", o.aggregate, event} // an id may begin with -
	if event == allParked {
		args = []string{"parked", "discard", o.aggregate, allParked}
	}
	output, err := n.CommandIn(ctx, nil, args...)
	if err != nil {
		c.say("%s: %s", o.aggregate, firstLine(output))
	}
	for _, a := range c.asidesIn(output) {
		c.giveUp(n.Settings()[readModelGroup], o.aggregate, a.Version, witness.Leaving{})
	}
}

// messages are the parked messages of an order.
func (c *campaign) messages(ctx context.Context, n *cluster.Node, o *odd) []aside {
	output, _ := n.CommandIn(ctx, nil, "parked", "list", o.aggregate)
	return c.asidesIn(output)
}

// deleteMessages deletes every parked message beside the projectors. A redrive must
// not go on over what is gone.
func deleteMessages(ctx context.Context, c *campaign, n *cluster.Node, o *odd) (string, error) {
	deleted, err := c.deleteParked(ctx)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d parked messages deleted, those", deleted), c.mustRefuse(ctx, n, nil, c.documents(halts, o), "parked", "redrive", o.aggregate)
}

// deleteParked deletes all parked messages that there are, and notes which.
func (c *campaign) deleteParked(ctx context.Context) (int, error) {
	type key struct {
		ID      bson.RawValue `bson:"_id"`
		Version int64         `bson:"aggregateVersion"`
	}
	var all []key
	cursor, err := c.witness.ReadModel().Collection(parkedMessages).Find(ctx, bson.D{})
	if err == nil {
		err = cursor.All(ctx, &all)
	}
	for _, k := range all {
		if err == nil {
			aggregate, _ := k.ID.Document().Lookup("aggregateId").StringValueOK()
			event, _ := k.ID.Document().Lookup("eventId").StringValueOK()
			c.giveUp(ownGroup, aggregate, max(k.Version, c.witness.VersionOf(event)), witness.Leaving{Deleted: true})
			_, err = c.witness.ReadModel().Collection(parkedMessages).DeleteOne(ctx, bson.D{{Key: "_id", Value: k.ID}})
		}
	}
	return len(all), err
}

// deleteHalts deletes every halt beside the projectors, which put back those of
// messages that are parked.
func deleteHalts(ctx context.Context, c *campaign, _ *cluster.Node, _ *odd) (string, error) {
	result, err := c.witness.ReadModel().Collection(halts).DeleteMany(ctx, bson.D{})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d halts deleted, that", result.DeletedCount), nil
}

// documents is a look at the documents of an order in a collection of the read database.
func (c *campaign) documents(collection string, o *odd) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		var all []bson.Raw
		cursor, err := c.witness.ReadModel().Collection(collection).Find(ctx, bson.D{{Key: "_id", Value: o.aggregate}})
		if err == nil {
			err = cursor.All(ctx, &all)
		}
		return fmt.Sprint(all), err
	}
}
