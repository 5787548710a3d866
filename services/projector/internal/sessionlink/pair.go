package sessionlink

import (
	"context"
	"crypto/rand"
	"errors"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/Azure/go-amqp"
)

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
