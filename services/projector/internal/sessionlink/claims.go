package sessionlink

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/Azure/go-amqp"
	"github.com/rs/zerolog"

	"changerelay/services/projector/internal/backoff"
	"changerelay/services/projector/internal/namespace"
)

const (
	// tokenLife is how long the tokens are good that are made here.
	tokenLife = time.Hour
	// earliest is how long before its end a claim is put again, at most.
	earliest = 7 * time.Minute
	// claimTime bounds one claim.
	claimTime = 30 * time.Second
)

// claims are what one connection has proven to the service: for each entity,
// that it may listen there. A claim serves every link of the connection and is
// put again before its token ends; the service drops the links of one that has
// ended.
type claims struct {
	access *namespace.Access
	life   time.Duration
	cbs    *node
	log    zerolog.Logger
	// answerTime is how long the service may take to answer a claim; unanswered is called
	// for one that runs out of time after that.
	answerTime time.Duration
	unanswered func()
	// turn has a token for whoever puts a claim.
	turn chan struct{}
	// changed tells run that there is another claim.
	changed chan struct{}

	mu  sync.Mutex
	all map[string]claim // guarded by mu: by entity
}

// claim is when a claim was put, and when it is due again; the zero time for never.
type claim struct{ put, due time.Time }

func newClaims(cfg *Config, cbs *node, unanswered func(), log zerolog.Logger) *claims {
	return &claims{
		access: &cfg.Access, life: cfg.tokenLife, cbs: cbs, log: log, answerTime: cfg.answerTime, unanswered: unanswered,
		turn: make(chan struct{}, 1), changed: make(chan struct{}, 1), all: map[string]claim{},
	}
}

// put proves that this connection may listen on an entity, unless that was done
// after a moment.
func (c *claims) put(ctx context.Context, entity string, after time.Time) error {
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-c.turn }()
	c.mu.Lock()
	fresh := c.all[entity].put.After(after)
	c.mu.Unlock()
	if fresh {
		return nil
	}
	audience := c.access.Audience(entity)
	token, err := c.access.Token(ctx, audience, c.life)
	if err != nil {
		return err
	}
	request := &amqp.Message{Value: token.Text, ApplicationProperties: map[string]any{
		"operation": "put-token", "type": token.Kind, "name": audience,
	}}
	if !token.Ends.IsZero() {
		request.ApplicationProperties["expiration"] = token.Ends.UTC()
	}
	asked := time.Now()
	if _, err := c.cbs.ask(ctx, request); err != nil {
		if ctx.Err() != nil && time.Since(asked) >= c.answerTime {
			c.unanswered()
		}
		return fmt.Errorf("claim to listen on %q: %w", entity, err)
	}
	now := time.Now()
	put := claim{put: now}
	if !token.Ends.IsZero() {
		put.due = now.Add(dueIn(token.Ends.Sub(now)))
	}
	c.mu.Lock()
	c.all[entity] = put
	c.mu.Unlock()
	select {
	case c.changed <- struct{}{}:
	default:
	}
	return nil
}

// dueIn is when a claim is put again whose token has so long left. A credential
// may give the same token once more, so this can be soon.
func dueIn(left time.Duration) time.Duration {
	return max(left-min(left/3, earliest), time.Second)
}

// next is the entity whose claim is due first.
func (c *claims) next() (entity string, due time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for e, claim := range c.all {
		if !claim.due.IsZero() && (due.IsZero() || claim.due.Before(due)) {
			entity, due = e, claim.due
		}
	}
	return entity, due
}

// run puts claims again before they end, until ctx ends.
func (c *claims) run(ctx context.Context) {
	again := backoff.Backoff{Initial: time.Second, Max: time.Minute}
	for ctx.Err() == nil {
		entity, due := c.next()
		if !c.await(ctx, due) {
			continue
		}
		attempt, cancel := context.WithTimeout(ctx, claimTime)
		err := c.put(attempt, entity, due)
		cancel()
		if err == nil {
			again.Reset()
			continue
		}
		if ctx.Err() == nil {
			c.log.Warn().Err(err).Msg("a claim could not be put again, trying again")
			_ = again.Wait(ctx)
		}
	}
}

// await waits for a moment, and tells whether it came: not where ctx ended or
// there is another claim before. The zero time never comes.
func (c *claims) await(ctx context.Context, due time.Time) bool {
	var came <-chan time.Time
	if !due.IsZero() {
		timer := time.NewTimer(time.Until(due))
		defer timer.Stop()
		came = timer.C
	}
	select {
	case <-came:
		return true
	case <-c.changed:
	case <-ctx.Done():
	}
	return false
}
