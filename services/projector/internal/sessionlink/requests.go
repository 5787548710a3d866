package sessionlink

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"strconv"
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

// patienceMost bounds patience that has grown: half of a usual lock of one minute, which is
// when a renewal is sent.
const patienceMost = 30 * time.Second

// patience is how long nothing may be answered. It grows where answers take longer, so that
// a slow service is not taken for a silent one again and again.
type patience struct {
	least time.Duration // 0 waits for ever

	mu    sync.Mutex
	grown time.Duration // guarded by mu; less than least until it has grown
}

// lasts returns how long it lasts now; 0 is for ever.
func (p *patience) lasts() time.Duration {
	if p.least == 0 {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(p.least, p.grown)
}

// unanswered notes that a pair was let go.
func (p *patience) unanswered() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.grown = min(2*max(p.least, p.grown), patienceMost)
}

// answered notes how long an answer took.
func (p *patience) answered(took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.grown = min(2*took, patienceMost)
}

// pair is a link for requests and one for their answers, on an AMQP session of
// their own.
type pair struct {
	session *amqp.Session
	out     *amqp.Sender
	in      *amqp.Receiver
	replyTo string
	stop    context.CancelFunc // of run
	running *running           // requests that are being sent

	mu      sync.Mutex
	last    uint64                        // guarded by mu: the last request's id
	waiting map[string]chan *amqp.Message // guarded by mu; nil once the pair has ended
	err     error                         // guarded by mu: why it ended
	// silent is since when requests have been sent and none was answered; zero where all were.
	silent time.Time // guarded by mu
}

// answerCredit is how many answers may be on their way.
const answerCredit = 100

func newPair(ctx context.Context, conn *amqp.Conn, address string, running *running) (_ *pair, err error) {
	session, err := conn.NewSession(ctx, nil)
	if err != nil {
		return nil, err
	}
	p := &pair{session: session, running: running, replyTo: "answers-" + rand.Text(), waiting: map[string]chan *amqp.Message{}}
	if p.out, err = session.NewSender(ctx, address, nil); err == nil {
		p.in, err = session.NewReceiver(ctx, address, &amqp.ReceiverOptions{
			TargetAddress:             p.replyTo,
			Credit:                    answerCredit,
			SettlementMode:            amqp.ReceiverSettleModeFirst.Ptr(),
			RequestedSenderSettleMode: amqp.SenderSettleModeSettled.Ptr(),
		})
	}
	if err != nil {
		return nil, errors.Join(err, session.Close(ctx))
	}
	return p, nil
}

// run hands out answers until the link ends, as it does with the connection, or stop
// is called.
func (p *pair) run(ctx context.Context) {
	for {
		answer, err := p.in.Receive(ctx, nil)
		if err != nil {
			p.end(ctx, err)
			return
		}
		if answer.Properties == nil {
			continue
		}
		id, _ := answer.Properties.CorrelationID.(string)
		p.mu.Lock()
		// Whoever asked may have left.
		if asked := p.waiting[id]; asked != nil {
			delete(p.waiting, id)
			asked <- answer
		}
		p.silent = time.Time{}
		if len(p.waiting) > 0 {
			p.silent = time.Now()
		}
		p.mu.Unlock()
	}
}

// end lets go of the pair, and has its AMQP session end.
func (p *pair) end(ctx context.Context, err error) {
	defer p.stop()
	p.letGo(err)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWriteTime)
	defer cancel()
	_ = p.session.Close(ctx) // what it carried is over
}

// letGo has nobody use the pair any more, and tells everyone who waits that no answer
// will come.
func (p *pair) letGo(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.letGoLocked(err)
}

// letGoLocked is letGo for whoever holds mu.
func (p *pair) letGoLocked(err error) {
	for _, asked := range p.waiting {
		close(asked)
	}
	if p.waiting != nil {
		p.waiting, p.err = nil, err
	}
}

// giveUp lets go of a pair that answers nothing. The patience grows once for each pair, and
// before anyone asks over the next.
func (p *pair) giveUp(patience *patience) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting != nil {
		patience.unanswered()
		p.letGoLocked(errUnanswered)
	}
	p.stop()
}

// why is why the pair has ended, or err where it has not.
func (p *pair) why(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting == nil {
		return p.err
	}
	return err
}

func (p *pair) over() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting == nil
}

// ask sends a request and waits for its answer, until ctx ends. Where nothing is answered
// for as long as patience lasts the pair is let go.
func (p *pair) ask(ctx context.Context, request *amqp.Message, patience *patience) (*amqp.Message, error) {
	asked := time.Now()
	id, answered, err := p.note()
	if err != nil {
		return nil, err
	}
	defer p.forget(id)
	sending := *request // it may still be sent here when it is sent over another pair
	sending.Properties = &amqp.MessageProperties{MessageID: id, ReplyTo: &p.replyTo}
	sent := make(chan error, 1)
	// go-amqp waits for its turn on the link beyond ctx (v1.7.0, Sender.send).
	if !p.running.Go(func() { sent <- p.send(ctx, &sending) }) {
		return nil, errClosed
	}
	impatient := time.NewTimer(p.left(patience.lasts()))
	defer impatient.Stop()
	for {
		select {
		case err := <-sent:
			if err != nil {
				return nil, p.why(err)
			}
			sent = nil
		case answer := <-answered:
			if answer == nil {
				return nil, p.why(nil)
			}
			patience.answered(time.Since(asked))
			return answer, nil
		case <-impatient.C:
			left := p.left(patience.lasts())
			if left <= 0 {
				p.giveUp(patience)
				return nil, errUnanswered
			}
			impatient.Reset(left)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

var errUnanswered = errors.New("no request is answered")

// left is within what time something has to be answered to those whose patience lasts so
// long; 0 is for ever.
func (p *pair) left(patience time.Duration) time.Duration {
	if patience == 0 {
		return math.MaxInt64
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silent.IsZero() {
		return patience
	}
	return time.Until(p.silent.Add(patience))
}

func (p *pair) send(ctx context.Context, request *amqp.Message) error {
	err := p.out.Send(ctx, request, nil)
	// The service may end this link alone. Then run does not notice it.
	if _, ended := errors.AsType[*amqp.LinkError](err); ended {
		p.letGo(err)
		p.stop()
	}
	return err
}

// note makes room for an answer, under an id of its own.
func (p *pair) note() (string, <-chan *amqp.Message, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting == nil {
		return "", nil, p.err
	}
	p.last++
	id := strconv.FormatUint(p.last, 10)
	answered := make(chan *amqp.Message, 1)
	p.waiting[id] = answered
	if p.silent.IsZero() {
		p.silent = time.Now()
	}
	return id, answered, nil
}

func (p *pair) forget(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waiting, id)
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
