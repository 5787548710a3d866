package witness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/load"
	"changerelay/services/e2e/internal/harness/orders"
	"changerelay/services/e2e/internal/harness/poll"
)

// What services that were stopped in good order must not leave behind.
const (
	SessionsLocked = "sessions still locked after the projectors have stopped"
	CursorsOpen    = "cursors still open after the services have stopped"
	LeasesHeld     = "leases still held after the publishers have stopped"
)

const (
	// lockTime bounds how long a session stays locked that nobody holds.
	lockTime = time.Minute
	// freeTime is how long servers may take to notice who is gone: short against the locks of
	// sessions, which end by themselves.
	freeTime = 5 * time.Second
	// workTime bounds the wait for work that services are stopped at.
	workTime = 10 * time.Second
	// The events that are written meanwhile: so many a second, of so many aggregates, that
	// sessions get some steadily, and are kept.
	workRate, workAggregates = 200, 20
)

// application is what the witness calls itself to MongoDB.
const application = "witness"

// AwaitUnlocked waits, of a relay at rest, until no session is locked: whoever was killed or
// cut off leaves some that are, until their locks end. It waits no longer than these last.
func (w *Witness) AwaitUnlocked(ctx context.Context) {
	if w.endpoints.SandboxStatusURL == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lockTime)
	defer cancel()
	_ = poll.Until(ctx, "the sessions to be free", func(ctx context.Context) (bool, string) {
		locked, err := w.locked(ctx)
		return err == nil && locked == 0, fmt.Sprintf("%d locked, error %v", locked, err)
	})
}

// StopAtWork stops services in good order, and returns an error for each that does not end
// so. Meanwhile events are written, which nobody judges: at rest there is nothing that a
// service has to give back. Servers that are no sandbox do not tell what is held.
func (w *Witness) StopAtWork(ctx context.Context, to load.Inserter, nodes ...*cluster.Node) []error {
	if w.endpoints.SandboxStatusURL == "" {
		return cluster.Stop(ctx, nodes...)
	}
	generator := orders.NewGenerator(1, workAggregates)
	l := load.Load{To: to, Rate: workRate, Wrote: func([]orders.Event) {}, Next: func() (orders.Event, bool) {
		e := generator.Next(time.Now())
		e.Aggregate = "at-stop-" + e.Aggregate
		return e, true
	}}
	enough, wrote := make(chan struct{}), make(chan error, 1)
	go func() { wrote <- l.Run(ctx, enough) }()
	wait, cancel := context.WithTimeout(ctx, workTime)
	defer cancel()
	_ = poll.Until(wait, "a session to be held", func(ctx context.Context) (bool, string) { // a liar may never hold one
		locked, err := w.locked(ctx)
		return err == nil && locked > 0, ""
	})
	errs := cluster.Stop(ctx, nodes...)
	close(enough)
	if err := <-wrote; err != nil {
		errs = append(errs, fmt.Errorf("write while services stop: %w", err))
	}
	return errs
}

// AtStop looks at what is left once all services have stopped in good order. Whoever was
// killed or cut off leaves cursors and leases, too: only those count that were opened, or
// renewed, after the last time it happened, or all where since is zero and it never did.
// Servers that are no sandbox do not tell.
func (w *Witness) AtStop(ctx context.Context, since time.Time) ([]Violation, error) {
	if w.endpoints.SandboxStatusURL == "" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, freeTime)
	defer cancel()
	var sessions, cursors, leases validate.Findings
	last := errors.New("the servers do not say in time what is left")
	_ = poll.Until(ctx, "all to be given back", func(ctx context.Context) (bool, string) {
		found, open, held, err := w.left(ctx, since)
		if err == nil || !errors.Is(err, context.DeadlineExceeded) {
			sessions, cursors, leases, last = found, open, held, err
		}
		return err == nil && found.Count+open.Count+held.Count == 0, ""
	})
	return []Violation{{SessionsLocked, sessions}, {CursorsOpen, cursors}, {LeasesHeld, leases}}, last
}

// left is what is not given back at present.
func (w *Witness) left(ctx context.Context, since time.Time) (sessions, cursors, leases validate.Findings, err error) {
	sessions.Count, err = w.locked(ctx)
	if err == nil {
		cursors, err = w.openCursors(ctx, since)
	}
	if err == nil {
		leases, err = w.held(ctx, since)
	}
	return sessions, cursors, leases, err
}

// locked counts the locked sessions of the projectors' subscriptions.
func (w *Witness) locked(ctx context.Context) (n int, err error) {
	status, err := w.endpoints.SandboxStatus(ctx)
	if err != nil {
		return 0, fmt.Errorf("look for locked sessions: %w", err)
	}
	for _, name := range w.subscriptions {
		entity, err := status.Entity(w.names.Topic + "/Subscriptions/" + name)
		if err != nil {
			return 0, fmt.Errorf("look for locked sessions: %w", err)
		}
		n += entity.SessionsLocked
	}
	return n, nil
}

// openCursors finds cursors on the source and the relay's own databases, but those of the witness:
// all, or those that were opened since then.
func (w *Witness) openCursors(ctx context.Context, since time.Time) (found validate.Findings, err error) {
	status, err := w.endpoints.SandboxStatus(ctx)
	if err != nil {
		return found, fmt.Errorf("look for cursors: %w", err)
	}
	for _, cursor := range status.Cursors {
		database, _, _ := strings.Cut(cursor.Namespace, ".")
		ofRelay := slices.Contains([]string{w.names.SourceDatabase, w.names.StateDatabase, w.names.ReadModelDatabase}, database)
		// Ages are whole seconds.
		if age := time.Duration(cursor.AgeSeconds+1) * time.Second; ofRelay && cursor.Application != application && age <= time.Since(since) {
			found.Add("on %s, by %q, for %d s, a change stream: %t", cursor.Namespace, cursor.Application, cursor.AgeSeconds, cursor.ChangeStream)
		}
	}
	return found, nil
}

// held finds leases with a holder: all, or those that were renewed since then.
func (w *Witness) held(ctx context.Context, since time.Time) (found validate.Findings, err error) {
	var all []struct {
		Name   string `bson:"_id"`
		Holder string `bson:"leaderId"`
	}
	cursor, err := w.State().Collection(leases).Find(ctx, bson.D{
		{Key: "leaderId", Value: bson.D{{Key: "$nin", Value: bson.A{nil, ""}}}},
		{Key: "heartbeatAt", Value: bson.D{{Key: "$gt", Value: since}}},
	})
	if err == nil {
		err = cursor.All(ctx, &all)
	}
	if err != nil {
		return found, fmt.Errorf("look for leases: %w", err)
	}
	for _, l := range all {
		found.Add("%s by %s", l.Name, l.Holder)
	}
	return found, nil
}
