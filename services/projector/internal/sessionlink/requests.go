package sessionlink

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/Azure/go-amqp"
)

// node is a node that answers requests: $cbs, or an entity's $management. It is
// reached over one pair of links, which all sessions of the connection share and
// which is opened when it is first needed, and again when the service ended it.
type node struct {
	conn    *amqp.Conn
	address string
	// prepare proves that this connection may ask here, unless that was done after a
	// moment. It is called before a pair is opened; nil where that needs no claim.
	prepare func(ctx context.Context, after time.Time) error
	// turn has a token for whoever opens a pair.
	turn chan struct{}
	// running are the goroutines that read answers and send requests.
	running *running
	// patience is how long nothing may be answered while requests wait before another pair
	// is opened.
	patience patience

	mu   sync.Mutex
	pair *pair // guarded by mu; nil until there is one
}

func newNode(conn *amqp.Conn, address string, running *running, prepare func(context.Context, time.Time) error) *node {
	return &node{conn: conn, address: address, prepare: prepare, turn: make(chan struct{}, 1), running: running}
}

// ask sends a request and waits for its answer. One whose pair answers nothing is sent over
// another, for as long as ctx lasts. One whose pair ends otherwise is sent over another as
// well, and one that is refused because the claim has ended behind another claim: once in all.
func (n *node) ask(ctx context.Context, request *amqp.Message) (*amqp.Message, error) {
	for again := false; ; {
		asked := time.Now()
		answer, ended, err := n.askOnce(ctx, request)
		refused := n.prepare != nil && isUnauthorized(err)
		if ctx.Err() != nil || !ended && !refused {
			return answer, err
		}
		if !errors.Is(err, errUnanswered) {
			if again {
				return answer, err
			}
			again = true
		}
		if refused {
			if err := n.prepare(ctx, asked); err != nil {
				return nil, err
			}
		}
	}
}

// askOnce tells as well whether the pair has ended.
func (n *node) askOnce(ctx context.Context, request *amqp.Message) (_ *amqp.Message, ended bool, err error) {
	p, err := n.open(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("open %s: %w", n.address, err)
	}
	answer, err := p.ask(ctx, request, &n.patience)
	if err != nil {
		return nil, p.over(), fmt.Errorf("ask %s: %w", n.address, err)
	}
	return answer, false, check(answer)
}

// open returns the pair in use.
func (n *node) open(ctx context.Context) (*pair, error) {
	if p := n.current(); p != nil {
		return p, nil
	}
	select {
	case n.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-n.turn }()
	if p := n.current(); p != nil {
		return p, nil
	}
	if n.prepare != nil {
		if err := n.prepare(ctx, time.Time{}); err != nil {
			return nil, err
		}
	}
	p, err := newPair(ctx, n.conn, n.address, n.running)
	if err != nil {
		return nil, err
	}
	reading, stop := context.WithCancel(context.WithoutCancel(ctx))
	p.stop = stop
	if !n.running.Go(func() { p.run(reading) }) {
		p.end(ctx, errClosed)
		return nil, errClosed
	}
	n.mu.Lock()
	n.pair = p
	n.mu.Unlock()
	return p, nil
}

// ready opens a pair before it is needed, within a time: whoever needs it waits for this
// attempt, and then tries for itself.
func (n *node) ready(ctx context.Context, within time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	_, _ = n.open(ctx)
}

// current is the pair in use, if there is one that has not ended.
func (n *node) current() *pair {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.pair == nil || n.pair.over() {
		return nil
	}
	return n.pair
}

// answerError is an answer that is a refusal.
type answerError struct {
	code        int
	condition   amqp.ErrCond // may be empty
	description string
}

func (e *answerError) Error() string {
	return fmt.Sprintf("answer %d %s: %s", e.code, e.condition, e.description)
}

// check reads the answer's status. The names differ between nodes.
func check(answer *amqp.Message) error {
	p := answer.ApplicationProperties
	code, known := p["status-code"].(int32)
	if !known {
		code, known = p["statusCode"].(int32)
	}
	if !known {
		return errors.New("the answer has no status")
	}
	if code >= 200 && code < 300 {
		return nil
	}
	e := &answerError{code: int(code)}
	if e.description, known = p["status-description"].(string); !known {
		e.description, _ = p["statusDescription"].(string)
	}
	condition := p["error-condition"]
	if condition == nil {
		condition = p["errorCondition"]
	}
	switch c := condition.(type) {
	case amqp.Symbol:
		e.condition = amqp.ErrCond(c)
	case string:
		e.condition = amqp.ErrCond(c)
	}
	return e
}
